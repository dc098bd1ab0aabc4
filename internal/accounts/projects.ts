/** Projects (docs/reference/api.md, "Projects"). Refusals are thrown as ServiceError. */

import { invalid, required, ServiceError } from '../domain/errors.ts'
import { parseIdentifier } from '../domain/identifiers.ts'
import type { Project } from '../domain/model.ts'
import { parseName } from '../domain/names.ts'
import { inScope, type Principal, scopeOf } from '../domain/principal.ts'
import type { ProjectStore } from './ports.ts'

export interface Projects {
  /** 400 names the field or the customer is gone, 403 foreign customerId or out of a key's scope, 409 exists or too many. */
  create(
    principal: Principal,
    input: { projectId: unknown; name: unknown; customerId?: unknown },
  ): Promise<Project>
  /** Newest first, only what the principal reaches. */
  list(principal: Principal): Promise<Project[]>
  /** 404 also for a project of somebody else, so that its existence does not show. */
  read(principal: Principal, projectId: string): Promise<Project>
  update(principal: Principal, projectId: string, change: ProjectChange): Promise<Project>
  /** 400 while it has buffers. */
  remove(principal: Principal, projectId: string): Promise<void>
}

/** Body of a PATCH. */
export type ProjectChange = { readonly [Field in keyof Project]?: unknown }

const readOnly = ['projectId', 'customerId', 'createdAt', 'updatedAt'] as const

export function createProjects({ projects }: { projects: ProjectStore }): Projects {
  return {
    async create(principal, input) {
      const projectId = required(parseIdentifier('projectId', input.projectId))
      const name = required(parseName('name', input.name))
      const customerId = input.customerId ?? principal.customerId
      if (customerId !== principal.customerId) throw new ServiceError('customerForeign')
      if (!inScope(scopeOf(principal), customerId, projectId)) throw new ServiceError('projectForeign')
      return created(await projects.insert({ projectId, customerId, name }))
    },
    list: (principal) => projects.list(scopeOf(principal)),
    async read(principal, projectId) {
      return found(await projects.find(scopeOf(principal), projectId))
    },
    async update(principal, projectId, change) {
      const checked = checkChange(change)
      if (readOnly.some((field) => change[field] !== undefined)) {
        refuseReadOnly(found(await projects.find(scopeOf(principal), projectId)), change)
      }
      return found(await projects.update(scopeOf(principal), projectId, checked))
    },
    async remove(principal, projectId) {
      const outcome = await projects.delete(scopeOf(principal), projectId)
      if (outcome === undefined) throw new ServiceError('projectNotFound')
      if (outcome === 'has-buffers') throw new ServiceError('projectHasBuffers')
    },
  }
}

function created(outcome: Awaited<ReturnType<ProjectStore['insert']>>): Project {
  if (outcome === 'no-customer') throw new ServiceError('customerUnknown')
  if (outcome === 'exists') throw new ServiceError('projectExists')
  if (outcome === 'limit') throw new ServiceError('projectLimit')
  if (outcome === 'ids-spent') throw new ServiceError('idLimit')
  return outcome
}

function found(project: Project | undefined): Project {
  if (project === undefined) throw new ServiceError('projectNotFound')
  return project
}

/** What was read may be sent back; a change of it is refused (docs/architecture/protocol.md, "Admin requests"). */
function refuseReadOnly(stored: Project, change: ProjectChange): void {
  const changed = readOnly.find((field) => change[field] !== undefined && change[field] !== stored[field])
  if (changed) throw invalid(`${changed} cannot be changed`)
}

function checkChange(change: ProjectChange): { name?: string; enabled?: boolean } {
  const { name, enabled } = change
  if (enabled !== undefined && typeof enabled !== 'boolean') throw invalid('enabled must be a boolean')
  return {
    ...(name !== undefined && { name: required(parseName('name', name)) }),
    ...(enabled !== undefined && { enabled }),
  }
}
