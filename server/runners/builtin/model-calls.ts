/** The tool that lists the models of this server, for help on connecting one. */
import type { ModelInfo } from '../runner.ts';
import type { Call } from './call.ts';
import { succeeded } from './call.ts';
import type { BuiltinServices } from './services.ts';

/** Lists the models; `say` makes the words about them. */
export function listModelsCall(services: BuiltinServices, say: (models: readonly ModelInfo[]) => string): Call {
  return {
    name: 'list_models',
    args: {},
    preview: '',
    async run() {
      const models = await services.listModels();
      const lines = models.map(({ id, label, source }) => `${id} (${label}, ${source})`);
      return succeeded(lines.join('\n') || 'There are no models.', say(models));
    },
  };
}
