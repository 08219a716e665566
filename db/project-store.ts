/** Projects: names and colours for groups of sessions. */
import { asc, eq, sql } from 'drizzle-orm';
import type { StateDb } from './client.ts';
import { projects, sessions } from './schema.ts';
import type { Project, ProjectStore } from './stores.ts';

const toProject = (row: typeof projects.$inferSelect): Project => ({
  project_id: row.projectId,
  name: row.name,
  color: row.color,
});

export function createProjectStore(state: StateDb): ProjectStore {
  return {
    list: () =>
      state.read((db) =>
        db.select().from(projects).orderBy(asc(projects.createdAt), asc(projects.projectId)).all().map(toProject),
      ),

    create: (project, now) =>
      state.write((db) => {
        db.insert(projects)
          .values({ projectId: project.project_id, name: project.name, color: project.color, createdAt: now })
          .run();
        return project;
      }),

    patch: (projectId, patch) =>
      state.write((db) => {
        const before = db.select().from(projects).where(eq(projects.projectId, projectId)).get();
        if (!before) return null;
        const after = { ...before, ...patch };
        db.update(projects)
          .set({ name: after.name, color: after.color })
          .where(eq(projects.projectId, projectId))
          .run();
        return toProject(after);
      }),

    remove: (projectId, now) =>
      state.write((db) => {
        const before = db.select().from(projects).where(eq(projects.projectId, projectId)).get();
        if (!before) return null;
        const changed = db
          .update(sessions)
          .set({ projectId: null, updatedAt: now, runtimeRevision: sql`${sessions.runtimeRevision} + 1` })
          .where(eq(sessions.projectId, projectId))
          .returning({ id: sessions.id })
          .all();
        db.delete(projects).where(eq(projects.projectId, projectId)).run();
        return changed.map((row) => row.id);
      }),
  };
}
