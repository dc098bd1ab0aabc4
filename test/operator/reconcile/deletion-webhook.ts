/** A validating webhook that the API server asks before it removes certain Buffers: whoever answers late holds it up. */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { GROUP, PLURAL } from '../../../operator/resource.ts'
import { authorityFile, tlsFront } from './tls-front.ts'

export interface DeletionWebhook {
  /** Of `admissionregistration.k8s.io/v1`. */
  readonly configuration: object
  /** Names of the resources that were asked about, one for each time. */
  readonly asked: readonly string[]
  close(): Promise<void>
}

/** Asked about all whose names begin with `prefix`. `allow`: settles when the deletion may go on. */
export async function deletionWebhook(
  prefix: string,
  allow: (name: string) => Promise<void>,
): Promise<DeletionWebhook> {
  const asked: string[] = []
  const server = createServer(async (request, response) => {
    const { request: review } = (await json(request)) as { request: { uid: string; name: string } }
    asked.push(review.name)
    await allow(review.name)
    response.setHeader('content-type', 'application/json')
    response.end(
      JSON.stringify({
        apiVersion: 'admission.k8s.io/v1',
        kind: 'AdmissionReview',
        response: { uid: review.uid, allowed: true },
      }),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const front = await tlsFront((server.address() as AddressInfo).port)
  const rules = [{ apiGroups: [GROUP], apiVersions: ['*'], operations: ['DELETE'], resources: [PLURAL] }]
  return {
    configuration: {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name: prefix },
      webhooks: [
        {
          name: `${prefix}.example.com`,
          clientConfig: {
            url: `https://127.0.0.1:${front.port}/`,
            caBundle: readFileSync(authorityFile).toString('base64'),
          },
          rules,
          sideEffects: 'None',
          admissionReviewVersions: ['v1'],
          timeoutSeconds: 30,
          matchConditions: [{ name: 'named-so', expression: `request.name.startsWith('${prefix}-')` }],
        },
      ],
    },
    asked,
    close: async () => {
      await front.close()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
