/** The web page: static files, public; what they show needs the credential. */
import fastifyStatic from '@fastify/static';
import type { FastifyPluginAsync } from 'fastify';

const VERSIONED = /[\\/]vendor[\\/][^\\/]+-\d[^\\/]*[\\/]/;

export const pageRoutes =
  (folder: string): FastifyPluginAsync =>
  async (app) => {
    // Routes made by the plugin are public like the page itself.
    app.addHook('onRoute', (route) => {
      route.config = { ...route.config, public: true };
    });
    await app.register(fastifyStatic, {
      root: folder,
      prefix: '/',
      schemaHide: true,
      index: 'index.html',
      cacheControl: false,
      setHeaders: (response, path) => {
        // A vendored file with its version in its path never changes.
        response.header('cache-control', VERSIONED.test(path) ? 'public, max-age=31536000, immutable' : 'no-cache');
      },
    });
  };
