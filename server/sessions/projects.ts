/** Projects: groups of sessions. */
import type { Project, ProjectStore } from '../../db/stores.ts';
import { wellFormed } from '../core/text.ts';
import { AppError } from '../errors.ts';

export interface Projects {
  list(): Promise<Project[]>;
  create(input: { name: string; color?: string | null }): Promise<Project>;
  patch(projectId: string, patch: { name?: string; color?: string | null }): Promise<Project>;
  /** Un-assigns its sessions. */
  remove(projectId: string): Promise<void>;
}

export interface ProjectsParts {
  store: ProjectStore;
  now(): number;
  newId(): string;
  onChange(sessionId: string, reason: string): void;
  /** A name or a colour changed, which no session tells: readers of the list are to read anew. */
  onListChange(): void;
}

export function createProjects({ store, now, newId, onChange, onListChange }: ProjectsParts): Projects {
  return {
    list: () => store.list(),
    async create({ name, color = null }) {
      const project = await store.create({ project_id: newId(), name: wellFormed(name), color }, now());
      onListChange();
      return project;
    },
    async patch(projectId, patch) {
      const name = patch.name === undefined ? {} : { name: wellFormed(patch.name) };
      const project = await store.patch(projectId, { ...patch, ...name });
      if (!project) throw new AppError('project_not_found');
      onListChange();
      return project;
    },
    async remove(projectId) {
      const sessions = await store.remove(projectId, now());
      if (!sessions) throw new AppError('project_not_found');
      for (const sessionId of sessions) onChange(sessionId, 'changed');
      onListChange();
    },
  };
}
