/** Roles and what they may do (docs/reference/api.md, "Roles"). */
import type { Role } from './model.ts'

/** From the least to the most powerful. */
export const roles: readonly Role[] = ['viewer', 'member', 'admin', 'owner']

/** Which roles may do what (docs/reference/api.md, "Roles"). */
export const rolesFor = {
  read: ['viewer', 'member', 'admin', 'owner'],
  writeBuffers: ['member', 'admin', 'owner'],
  writeProjects: ['admin', 'owner'],
  writeApiKeys: ['admin', 'owner'],
  readAudit: ['admin', 'owner'],
  writeDeadLetters: ['admin', 'owner'],
  addCredits: ['admin', 'owner'],
  checkout: ['admin', 'owner'],
  cancelImmediately: ['admin', 'owner'],
  cancelAtPeriodEnd: ['owner'],
  createCustomers: ['owner'],
} as const satisfies Record<string, readonly Role[]>

export type Action = keyof typeof rolesFor

export function isRole(value: unknown): value is Role {
  return (roles as readonly unknown[]).includes(value)
}

export function mayPerform(role: Role, action: Action): boolean {
  return (rolesFor[action] as readonly Role[]).includes(role)
}

/** The `message` of a 403 for a missing role. */
export function requiredRoles(action: Action): string {
  return `Requires one of the following roles: ${rolesFor[action].join(', ')}`
}

/** `ceiling` and all roles below it. */
export function rolesUpTo(ceiling: Role): readonly Role[] {
  return roles.filter((role) => isWithinRole(role, ceiling))
}

/** Whether a caller of role `ceiling` may hand out `role`. */
export function isWithinRole(role: Role, ceiling: Role): boolean {
  return roles.indexOf(role) <= roles.indexOf(ceiling)
}

/** Whether a restriction to projects is no broader than the caller's; undefined means all projects. */
export function areWithinProjects(
  projectIds: readonly string[] | undefined,
  ceiling: readonly string[] | undefined,
): boolean {
  if (ceiling === undefined) return true
  return projectIds?.every((projectId) => ceiling.includes(projectId)) ?? false
}

/**
 * Whoever may write a buffer sees its secrets; others see them redacted (docs/architecture/protocol.md, "Admin
 * requests").
 */
export function seesSecrets(role: Role): boolean {
  return mayPerform(role, 'writeBuffers')
}
