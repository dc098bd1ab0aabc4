/**
 * The operator's own writes to Buffer resources. Each names the version that it was decided on: it meets neither a resource
 * that was made anew under the name nor one that was changed meanwhile, which has its next pass anyway.
 */
import {
  API_VERSION,
  type BufferResource,
  type BufferStatus,
  FIELD_MANAGER,
  KIND,
  PLURAL,
} from '../resource.ts'
import type { ApiServer } from './api-server.ts'
import { reduced } from './reduced.ts'

export class BufferResourceWriter {
  readonly #api: ApiServer

  constructor(api: ApiServer) {
    this.#api = api
  }

  /**
   * Resolves with the resource as it then is. Rejects with ApiError 409 when the resource changed since it was read, or is
   * another one, and with 404 when it is gone.
   */
  async setFinalizers(resource: BufferResource, finalizers: readonly string[]): Promise<BufferResource> {
    const { resourceVersion } = resource.metadata
    const written = await this.#api.request<BufferResource>('PATCH', pathOf(resource), {
      query: { fieldManager: FIELD_MANAGER },
      contentType: 'application/merge-patch+json',
      body: { metadata: { resourceVersion, finalizers } },
    })
    return reduced(written)
  }

  /**
   * Server-side apply of the whole status: a field that it lacks is removed, those of others stay. Rejects as
   * `setFinalizers`. (A uid would not do: the API server ignores it where a status is written.)
   */
  async applyStatus(resource: BufferResource, status: BufferStatus): Promise<BufferResource> {
    const { name, namespace, resourceVersion } = resource.metadata
    const written = await this.#api.request<BufferResource>('PATCH', `${pathOf(resource)}/status`, {
      query: { fieldManager: FIELD_MANAGER, force: true },
      contentType: 'application/apply-patch+yaml',
      body: { apiVersion: API_VERSION, kind: KIND, metadata: { name, namespace, resourceVersion }, status },
    })
    return reduced(written)
  }
}

function pathOf({ metadata: { namespace, name } }: BufferResource): string {
  return `/apis/${API_VERSION}/namespaces/${namespace}/${PLURAL}/${name}`
}
