// @ts-check
import { FloorBatchTarget, FloorTarget, FloorWsTarget } from './floor.mjs';
import { HermesWebuiTarget } from './hermes-webui.mjs';
import { OpencodeTarget } from './opencode.mjs';
import { TurnkeepTarget, TurnkeepWsTarget } from './turnkeep.mjs';

/** @type {Record<string, new (options: import('./base.mjs').TargetOptions) => import('./base.mjs').Target>} */
export const targets = {
  floor: FloorTarget,
  'floor-batch': FloorBatchTarget,
  'floor-ws': FloorWsTarget,
  'hermes-webui': HermesWebuiTarget,
  opencode: OpencodeTarget,
  turnkeep: TurnkeepTarget,
  'turnkeep-ws': TurnkeepWsTarget,
};
