/** The providers that the configuration names, in its order: that of the `model` section first. */
import { PROVIDER_DEFAULTS, type Price, type ProviderConfig, type ProviderKind } from './provider.ts';

/** One provider as the configuration has it. */
export interface ProviderSection {
  kind: ProviderKind;
  base_url?: string;
  default?: string;
  context_length?: number;
  price?: Price;
  images?: boolean;
  models?: readonly string[];
}

export interface ProviderSections {
  /** `provider` is its name and its kind in one; with `builtin` there is none. */
  model: Omit<ProviderSection, 'kind'> & { provider: ProviderKind | 'builtin' };
  providers: Record<string, ProviderSection>;
  /** Key of the `model` section's provider. */
  apiKey: string | null;
  /** Keys of the other providers, by their names. */
  providerKeys: Record<string, string | null>;
}

/** Brings the sections of a checked configuration into one list. */
export function configuredProviders({ model, providers, apiKey, providerKeys }: ProviderSections): ProviderConfig[] {
  const others = Object.entries(providers).map(([name, section]) =>
    toProvider(name, section, providerKeys[name] ?? null),
  );
  if (model.provider === 'builtin') return others;
  return [toProvider(model.provider, { ...model, kind: model.provider }, apiKey), ...others];
}

function toProvider(name: string, section: ProviderSection, apiKey: string | null): ProviderConfig {
  const { kind, base_url, default: defaultModel, context_length, price, images, models } = section;
  return {
    name,
    kind,
    baseUrl: (base_url ?? PROVIDER_DEFAULTS[kind].baseUrl ?? '').replace(/\/+$/, ''),
    apiKey,
    defaultModel: defaultModel ?? null,
    contextLength: context_length ?? null,
    ...(images === undefined ? {} : { images }),
    ...(models ? { models } : {}),
    ...(price ? { price } : {}),
  };
}
