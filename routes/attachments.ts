/**
 * Attachments of a session: upload, list, download. What is downloaded never runs in the page's origin, whatever it is (AT4).
 */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import Type from 'typebox';
import { type Attachments, type AttachmentView, tooLarge } from '../server/attachments/attachments.ts';
import { isImageType } from '../server/core/file-kinds.ts';
import { AppError } from '../server/errors.ts';
import { attachment, inline } from '../server/sessions/export-words.ts';
import { refusals, SessionParams } from './schemas.ts';
import { isFresh, notModified } from './sessions.ts';
import { receiveFile } from './upload-form.ts';

const Attachment = Type.Object({
  id: Type.String(),
  name: Type.String({ description: 'As its sender called it, without what is unsafe in the name of a file.' }),
  mime: Type.String({ description: 'By its bytes.' }),
  size: Type.Integer({ description: 'Bytes.' }),
});
const AttachmentParams = Type.Object({
  ...SessionParams.properties,
  attachment_id: Type.String({ minLength: 1, maxLength: 200 }),
});
/** What a form may have beside its file. */
const FORM_BYTES = 65_536;

export const attachmentRoutes =
  (attachments: Attachments): FastifyPluginAsyncTypebox =>
  async (app) => {
    await app.register(uploadRoute(attachments));

    app.get(
      '/api/sessions/:id/attachments',
      {
        schema: {
          summary: 'Attachments of a session',
          params: SessionParams,
          response: { 200: Type.Object({ attachments: Type.Array(Attachment) }), ...refusals(400, 404, 503) },
        },
      },
      async (request) => ({ attachments: await attachments.list(request.params.id) }),
    );

    app.get(
      '/api/sessions/:id/attachments/:attachment_id',
      {
        schema: {
          summary: 'Download an attachment',
          params: AttachmentParams,
          response: {
            200: {
              description: 'The file. Images and text may be shown in place, anything else is saved.',
              content: { 'application/octet-stream': { schema: Type.String() } },
            },
            ...refusals(400, 404, 503),
          },
        },
        exposeHeadRoute: false,
      },
      // The typed reply wants a text; a stream goes out as it is.
      async (request, reply) => download(request, reply as never, attachments) as never,
    );
    app.head(
      '/api/sessions/:id/attachments/:attachment_id',
      { schema: { hide: true, params: AttachmentParams, response: refusals(400, 404, 503) } },
      async (request, reply) => download(request, reply as never, attachments),
    );
  };

/** Apart, for it alone takes forms. */
const uploadRoute =
  (attachments: Attachments): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.removeAllContentTypeParsers();
    // The handler reads it as it comes.
    app.addContentTypeParser('multipart/form-data', (_request, _body, done) => done(null));
    app.addContentTypeParser('*', (_request, _body, done) => done(new AppError('not_multipart')));

    app.post(
      '/api/sessions/:id/attachments',
      {
        config: { upload: true, fills: true },
        // The form is checked where it is read.
        validatorCompiler: (route) => (route.httpPart === 'body' ? () => true : app.validatorCompiler!(route)),
        schema: {
          summary: 'Upload a file, to be named by a prompt',
          consumes: ['multipart/form-data'],
          params: SessionParams,
          body: {
            type: 'object',
            required: ['file'],
            properties: { file: { type: 'string', contentMediaType: 'application/octet-stream' } },
          },
          response: {
            201: Type.Object({ attachment: Attachment }),
            ...refusals(400, 404, 408, 413, 415, 422, 503, 507),
          },
        },
      },
      async (request, reply) => {
        const { raw } = request;
        const { id } = request.params as { id: string };
        if (!/^multipart\/form-data\b/i.test(raw.headers['content-type'] ?? '')) throw new AppError('not_multipart');
        if (Number(raw.headers['content-length'] ?? 0) > attachments.maxBytes + FORM_BYTES) {
          throw tooLarge(attachments.maxBytes);
        }
        const upload = await receiveFile(raw, (name) => attachments.begin(id, name));
        return reply.code(201).send({ attachment: await upload.keep() });
      },
    );
  };

interface DownloadRequest extends FastifyRequest {
  params: { id: string; attachment_id: string };
}

async function download(request: FastifyRequest, reply: FastifyReply, attachments: Attachments): Promise<FastifyReply> {
  const { id, attachment_id } = (request as DownloadRequest).params;
  const file = await attachments.open(id, attachment_id);
  const { name, size } = file.attachment;
  const type = shownType(file.attachment);
  reply
    .type(type ?? 'application/octet-stream')
    .header('content-disposition', type === null ? attachment(name) : inline(name))
    // Should anything take it for a page all the same: one without scripts, in an origin of its own.
    .header('content-security-policy', "default-src 'none'; sandbox; frame-ancestors 'none'");
  const fresh = isFresh(request, reply, `"${file.tag}"`);
  if (fresh || request.method === 'HEAD') await file.close();
  if (fresh) return notModified(reply);
  reply.header('content-length', size);
  return request.method === 'HEAD' ? reply.send() : reply.send(file.stream());
}

/** Under which type a browser may show it in place; null for what is only saved. */
function shownType({ mime }: AttachmentView): string | null {
  if (isImageType(mime)) return mime;
  return mime === 'text/plain' ? 'text/plain; charset=utf-8' : null;
}
