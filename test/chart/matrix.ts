/** Values that differ in whatever the templates ask. */
import { leastCluster, leastLocal, type Values, valuesFile } from './helm.ts'

export const ALL_APIS = ['monitoring.coreos.com/v1', 'custom.metrics.k8s.io/v1beta2'].flatMap((api) => [
  '--api-versions',
  api,
])

export interface Row {
  readonly what: string
  readonly values: readonly (string | Values)[]
  readonly further?: readonly string[]
}

const placed = {
  podLabels: { team: 'webhooks' },
  podAnnotations: { 'example.com/note': 'yes' },
  nodeSelector: { 'kubernetes.io/os': 'linux' },
  tolerations: [{ key: 'dedicated', operator: 'Exists' }],
  affinity: {
    nodeAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [
        {
          weight: 1,
          preference: {
            matchExpressions: [{ key: 'kubernetes.io/arch', operator: 'In', values: ['amd64'] }],
          },
        },
      ],
    },
  },
  priorityClassName: 'system-cluster-critical',
}
const { podAnnotations: _, ...placedHook } = placed
const peers = [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'edge' } } }]

export const everything = {
  fullnameOverride: 'hooks',
  image: {
    repository: 'registry.example.com/penstock',
    digest: `sha256:${'a'.repeat(64)}`,
    pullPolicy: 'Always',
  },
  imagePullSecrets: [{ name: 'registry' }],
  nats: {
    url: 'tls://app:$(NATS_PASSWORD)@nats-0:4222,tls://nats-1:4222',
    passwordSecret: { name: 'nats' },
    credsSecret: { name: 'nats', key: 'app.creds' },
  },
  database: { urlSecret: { name: 'postgres-app' } },
  encryptionKeySecret: { name: 'keys' },
  ownerKeysSecret: { name: 'keys' },
  stripe: {
    keySecret: { name: 'stripe' },
    webhookSecret: { name: 'stripe' },
    returnUrl: 'https://app.example.com/billing',
  },
  trustedAuthorities: { configMap: 'authorities' },
  config: {
    subjects: 'shard',
    allowDestinations: ['10.1.0.0/16', 'fd00:1::/64'],
    dnsServers: ['10.96.0.11', 'fd00:1::b'],
    oidc: { issuer: 'https://id.example.com', audience: 'penstock', jwksUrl: 'https://id.example.com/keys' },
    catalog: { plans: [], packs: [] },
    auditDays: 400,
    logLevel: 'debug',
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318', OTEL_BSP_MAX_QUEUE_SIZE: 4096 },
  },
  ingress: {
    autoscaling: { enabled: true },
    service: { type: 'LoadBalancer', port: 8443, annotations: { 'example.com/lb': 'internal' } },
    ...placed,
  },
  admin: { service: { type: 'NodePort', port: 8080 }, ...placed },
  actor: { autoscaling: { enabled: true }, ...placed },
  operator: {
    watchNamespaces: ['ns'],
    adminUrl: 'https://admin.example.com',
    adminAuthority: { configMap: 'authorities', key: 'admin.crt' },
    ...placed,
  },
  migrate: placedHook,
  test: placedHook,
  networkPolicy: {
    ingressFrom: peers,
    adminFrom: peers,
    metricsFrom: peers,
    nats: { ports: [4222, 4443], to: peers },
    database: { to: peers },
    kubernetes: { to: [{ ipBlock: { cidr: '10.96.0.1/32' } }] },
    furtherEgress: [{ ports: [{ port: 4318 }], to: peers }],
  },
  serviceMonitor: { labels: { release: 'prometheus' } },
  admissionPolicy: {
    enabled: true,
    validationActions: ['Warn', 'Audit'],
    rules: [
      {
        name: 'shop',
        namespaceSelector: {
          matchLabels: { team: 'shop' },
          matchExpressions: [
            { key: 'example.com/stage', operator: 'NotIn', values: ['test', 'dev'] },
            { key: 'tier', operator: 'Exists' },
          ],
        },
        allowedHosts: ['hooks.example.com', '*.shop.example.com:8443', '[fd00::1]'],
      },
      { namespaceSelector: {}, allowedHosts: ['*'] },
    ],
  },
}

const nothingMore: Values = {
  operator: { enabled: false },
  crds: { install: false },
  networkPolicy: { enabled: false },
  serviceMonitor: { enabled: false },
}

/** Whatever values can name: objects of the release by `own`, all others by `other`. */
export function namesLike(own: string, other: string): Values {
  const secret = { name: other, key: other }
  const [local, migrate] = [
    { persistence: { storageClassName: other, size: '8' } },
    { podLabels: { [other]: other } },
  ]
  return {
    fullnameOverride: own,
    image: { repository: other, tag: other, digest: '' },
    nats: { url: '', urlSecret: secret, passwordSecret: secret, credsSecret: secret },
    database: { url: '', urlSecret: secret, passwordSecret: secret },
    encryptionKeySecret: secret,
    ownerKeysSecret: secret,
    stripe: { keySecret: secret, webhookSecret: secret, returnUrl: 'https://app.example.com' },
    local,
    migrate,
    trustedAuthorities: { configMap: other, key: other },
    config: { oidc: { issuer: '', audience: '', jwksUrl: '' } },
    actor: { autoscaling: { latenessMetric: other }, priorityClassName: other },
    operator: { adminAuthority: { configMap: other, key: other }, watchNamespaces: [other] },
  }
}

export const matrix: readonly Row[] = [
  { what: 'the least of a cluster', values: [leastCluster] },
  { what: 'the least of a local instance', values: [leastLocal] },
  { what: 'values-local.yaml', values: [valuesFile('local')] },
  { what: 'values-production.yaml', values: [valuesFile('production')] },
  {
    what: 'values-production.yaml where all APIs are',
    values: [valuesFile('production')],
    further: ALL_APIS,
  },
  { what: 'everything', values: [everything], further: ALL_APIS },
  {
    what: 'names that YAML takes for something else',
    values: [everything, namesLike('null', '1e5')],
    further: ALL_APIS,
  },
  { what: 'such names of a local instance', values: [leastLocal, namesLike('true', '0x1f')] },
  { what: 'nothing more than a cluster', values: [leastCluster, nothingMore] },
  { what: 'nothing more than a local instance', values: [leastLocal, nothingMore] },
  {
    what: 'a local instance over a broker and a database of its own',
    values: [
      leastLocal,
      leastCluster,
      { ownerKeysSecret: { name: 'keys' }, local: { persistence: { enabled: false }, ...placed } },
      { networkPolicy: { ingressFrom: peers, adminFrom: peers }, config: { catalog: { plans: [] } } },
    ],
  },
]
