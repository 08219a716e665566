/**
 * Which images models have refused, so that none is sent a second time (AT8). A model that refused its first ones takes none;
 * one that took some before has refused these. Kept in memory: after a restart a model may refuse once more, which costs
 * one request.
 */

export interface ImageMemory {
  /** @param model with its provider @param image names it among all sessions */
  mayShow(model: string, image: string): boolean;
  accepted(model: string, images: readonly string[]): void;
  refused(model: string, images: readonly string[]): void;
}

interface Known {
  takesNone: boolean;
  accepted: Set<string>;
  refused: Set<string>;
}

/** Most images of a model that are remembered, of each kind. */
const MOST = 1000;

export function createImageMemory(): ImageMemory {
  const models = new Map<string, Known>();

  const known = (model: string): Known => {
    const found = models.get(model) ?? { takesNone: false, accepted: new Set(), refused: new Set() };
    models.set(model, found);
    return found;
  };

  return {
    mayShow(model, image) {
      const found = models.get(model);
      return !found || !(found.takesNone || found.refused.has(image));
    },
    accepted(model, images) {
      const { accepted } = known(model);
      for (const image of images) remember(accepted, image);
    },
    refused(model, images) {
      const { accepted, refused } = known(model);
      if (accepted.size === 0) {
        known(model).takesNone = true;
        return;
      }
      // What was taken before is not what it refuses now, unless there is nothing else.
      const fresh = images.filter((image) => !accepted.has(image));
      for (const image of fresh.length > 0 ? fresh : images) remember(refused, image);
    },
  };
}

/** Adds to a set; the oldest of too many is forgotten. */
function remember(set: Set<string>, image: string): void {
  set.delete(image);
  set.add(image);
  const [oldest] = set;
  if (set.size > MOST && oldest !== undefined) set.delete(oldest);
}
