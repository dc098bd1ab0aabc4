/**
 * The operator's own writes to Buffer resources. Each names the version that it was decided on: it meets neither a resource
 * that was made anew under the name nor one that was changed meanwhile, which has its next pass anyway.
 */

import { StaleError } from '../reconcile/ports.ts'
import {
  API_VERSION,
  type BufferResource,
  type BufferStatus,
  FIELD_MANAGER,
  KIND,
  PLURAL,
} from '../resource.ts'
import { hasStatus } from './api-error.ts'
import type { ApiServer, Call } from './api-server.ts'
import { ofResource } from './kept.ts'

export class BufferResourceWriter {
  readonly #api: ApiServer

  constructor(api: ApiServer) {
    this.#api = api
  }

  /**
   * Resolves with the resource as it then is. Rejects with StaleError when the resource changed since it was read, or is
   * another one, and with ApiError 404 when it is gone.
   */
  async setFinalizers(resource: BufferResource, finalizers: readonly string[]): Promise<BufferResource> {
    const { resourceVersion } = resource.metadata
    return this.#patch(pathOf(resource), {
      query: { fieldManager: FIELD_MANAGER },
      contentType: 'application/merge-patch+json',
      body: { metadata: { resourceVersion, finalizers } },
    })
  }

  /**
   * Server-side apply of the whole status: a field that it lacks is removed, those of others stay. Rejects as
   * `setFinalizers`. (A uid would not do: the API server ignores it where a status is written.)
   */
  async applyStatus(resource: BufferResource, status: BufferStatus): Promise<BufferResource> {
    const { name, namespace, resourceVersion } = resource.metadata
    return this.#patch(`${pathOf(resource)}/status`, {
      query: { fieldManager: FIELD_MANAGER, force: true },
      contentType: 'application/apply-patch+yaml',
      body: { apiVersion: API_VERSION, kind: KIND, metadata: { name, namespace, resourceVersion }, status },
    })
  }

  async #patch(path: string, call: Call): Promise<BufferResource> {
    try {
      return await this.#api.request<BufferResource>('PATCH', path, { ...call, keeps: ofResource })
    } catch (error) {
      if (!hasStatus(error, 409)) throw error
      throw new StaleError((error as Error).message, { cause: error })
    }
  }
}

function pathOf({ metadata: { namespace, name } }: BufferResource): string {
  return `/apis/${API_VERSION}/namespaces/${namespace}/${PLURAL}/${name}`
}
