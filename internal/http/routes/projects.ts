import type { Project } from '../../domain/model.ts'
import type { Principal } from '../../domain/principal.ts'
import { body, identifier, name } from './fields.ts'
import { type Route, route } from './route.ts'

/** The use case of projects that these rows call. */
export interface ProjectsService {
  create(
    principal: Principal,
    input: { projectId: unknown; name: unknown; customerId?: unknown },
  ): Promise<Project>
  list(principal: Principal): Promise<Project[]>
  read(principal: Principal, projectId: string): Promise<Project>
  update(
    principal: Principal,
    projectId: string,
    change: { readonly [Field in keyof Project]?: unknown },
  ): Promise<Project>
  remove(principal: Principal, projectId: string): Promise<void>
}

const COLLECTION = '/v1/admin/projects'
const ONE = `${COLLECTION}/{projectId}`

interface Named {
  projectId: string
}

/** docs/reference/api.md, "Projects". */
export function projectRoutes(projects: ProjectsService): Route[] {
  return [create(projects), list(projects), read(projects), update(projects), remove(projects)]
}

function create(projects: ProjectsService): Route {
  return route<unknown, unknown, { projectId: string; name: string; customerId?: string }>({
    method: 'POST',
    path: COLLECTION,
    operationId: 'createProject',
    summary: 'Create a project',
    action: 'writeProjects',
    body: body(
      'A project to create.',
      {
        projectId: identifier(
          'Identifier of the project, unique in the installation, also among deleted ones of other customers',
        ),
        name: name(),
        customerId: { type: 'string', description: 'Only the authenticated customer is allowed.' },
      },
      ['projectId', 'name'],
    ),
    answers: { status: 201, schema: 'Project' },
    errors: ['customerUnknown', 'projectForeign', 'projectExists', 'projectLimit', 'idLimit'],
    handler: async (call) => ({ status: 201, body: await projects.create(call.principal, call.body) }),
  })
}

function list(projects: ProjectsService): Route {
  return route({
    method: 'GET',
    path: COLLECTION,
    operationId: 'listProjects',
    summary: 'List projects',
    action: 'read',
    customerId: 'required',
    answers: { status: 200, schema: 'Project', array: true },
    errors: [],
    handler: async (call) => ({ status: 200, body: await projects.list(call.principal) }),
  })
}

function read(projects: ProjectsService): Route {
  return route<Named, unknown, unknown>({
    method: 'GET',
    path: ONE,
    operationId: 'readProject',
    summary: 'Read a project',
    action: 'read',
    notFound: 'projectNotFound',
    answers: { status: 200, schema: 'Project' },
    errors: [],
    handler: async (call) => ({
      status: 200,
      body: await projects.read(call.principal, call.params.projectId),
    }),
  })
}

/** Accepted when unchanged, so that what was read can be sent back. */
const readOnly = {
  projectId: { type: 'string', description: 'Cannot be changed.' },
  customerId: { type: 'string', description: 'Cannot be changed.' },
  createdAt: { type: 'integer', description: 'Cannot be changed.' },
  updatedAt: { type: 'integer', description: 'Cannot be changed.' },
} as const

function update(projects: ProjectsService): Route {
  return route<Named, unknown, Partial<Project>>({
    method: 'PATCH',
    path: ONE,
    operationId: 'updateProject',
    summary: 'Change a project',
    action: 'writeProjects',
    notFound: 'projectNotFound',
    body: body('Members to change.', {
      name: name(),
      enabled: { type: 'boolean', description: 'Stored, without effect.' },
      ...readOnly,
    }),
    answers: { status: 200, schema: 'Project' },
    errors: [],
    handler: async (call) => ({
      status: 200,
      body: await projects.update(call.principal, call.params.projectId, call.body),
    }),
  })
}

function remove(projects: ProjectsService): Route {
  return route<Named, unknown, unknown>({
    method: 'DELETE',
    path: ONE,
    operationId: 'deleteProject',
    summary: 'Delete a project without buffers',
    action: 'writeProjects',
    notFound: 'projectNotFound',
    answers: { status: 204 },
    errors: ['projectHasBuffers'],
    async handler(call) {
      await projects.remove(call.principal, call.params.projectId)
      return { status: 204 }
    },
  })
}
