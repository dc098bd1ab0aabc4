/** Projects (docs/reference/api.md, "Projects"): one SQL operation a function. */

import type { NewProject, ProjectStore } from '../accounts/ports.ts'
import type { Project } from '../domain/model.ts'
import type { Scope } from '../domain/principal.ts'
import { refusingWhenAway } from './availability.ts'
import { type Caps, NO_CAPS, type OverCap, overProjects } from './caps.ts'
import { type Database, FOREIGN_KEY_VIOLATION, sqlState } from './connection.ts'
import { reachable } from './scope.ts'

interface ProjectRow {
  project_id: string
  customer_id: string
  name: string
  enabled: boolean
  created_at: Date
  updated_at: Date
}

export function createProjectStore(db: Database, caps: Pick<Caps, 'projects'> = NO_CAPS): ProjectStore {
  return refusingWhenAway<ProjectStore>({
    insert: (project) => insertProject(db, caps.projects, project),
    list: (scope) => listProjects(db, scope),
    find: (scope, projectId) => findProject(db, scope, projectId),
    update: (scope, projectId, change) => updateProject(db, scope, projectId, change),
    delete: (scope, projectId) => deleteProject(db, scope, projectId),
  })
}

async function insertProject(
  db: Database,
  most: number,
  project: NewProject,
): Promise<Project | 'no-customer' | 'exists' | OverCap> {
  try {
    return await db.begin(async (transaction) => {
      const over = await overProjects(transaction, most, project)
      if (over !== null) return over
      const [row] = await transaction<ProjectRow[]>`
        INSERT INTO projects (project_id, customer_id, name)
        VALUES (${project.projectId}, ${project.customerId}, ${project.name})
        ON CONFLICT (project_id) DO NOTHING RETURNING *`
      return row ? projectOf(row) : 'exists'
    })
  } catch (error) {
    if (sqlState(error) === FOREIGN_KEY_VIOLATION) return 'no-customer'
    throw error
  }
}

async function listProjects(db: Database, scope: Scope): Promise<Project[]> {
  const rows = await db<ProjectRow[]>`
    SELECT * FROM projects WHERE ${reachable(db, scope)} ORDER BY created_at DESC, project_id`
  return rows.map(projectOf)
}

async function findProject(db: Database, scope: Scope, projectId: string): Promise<Project | undefined> {
  const [row] = await db<ProjectRow[]>`
    SELECT * FROM projects WHERE project_id = ${projectId} AND ${reachable(db, scope)}`
  return row && projectOf(row)
}

async function updateProject(
  db: Database,
  scope: Scope,
  projectId: string,
  change: { name?: string; enabled?: boolean },
): Promise<Project | undefined> {
  const [row] = await db<ProjectRow[]>`
    UPDATE projects SET
      name = coalesce(${change.name ?? null}::text, name),
      enabled = coalesce(${change.enabled ?? null}::boolean, enabled),
      updated_at = clock_timestamp()
    WHERE project_id = ${projectId} AND ${reachable(db, scope)} RETURNING *`
  return row && projectOf(row)
}

function deleteProject(
  db: Database,
  scope: Scope,
  projectId: string,
): Promise<'deleted' | 'has-buffers' | undefined> {
  return db.begin(async (transaction) => {
    // The creation of a buffer holds a share of this lock until it is committed: none can slip in between.
    const [locked] = await transaction`
      SELECT 1 FROM projects WHERE project_id = ${projectId} AND ${reachable(transaction, scope)} FOR UPDATE`
    if (locked === undefined) return undefined
    const [buffer] = await transaction`
      SELECT 1 FROM buffers WHERE project_id = ${projectId} AND deleted_at IS NULL LIMIT 1`
    if (buffer !== undefined) return 'has-buffers'
    await transaction`DELETE FROM projects WHERE project_id = ${projectId}`
    return 'deleted'
  })
}

function projectOf(row: ProjectRow): Project {
  return {
    projectId: row.project_id,
    customerId: row.customer_id,
    name: row.name,
    enabled: row.enabled,
    createdAt: row.created_at.getTime(),
    updatedAt: row.updated_at.getTime(),
  }
}
