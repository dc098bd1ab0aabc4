{{/* Variables that hold no secret, of every program but the operator. */}}
{{- define "penstock.config" -}}
{{- with .Values.config -}}
PENSTOCK_HOST: 0.0.0.0
PENSTOCK_SHARDS: {{ .shards | int | quote }}
PENSTOCK_REPLICAS: {{ .replicas | int | quote }}
PENSTOCK_SUBJECTS: {{ .subjects }}
{{- if ne (toString .initialCredits) "" }}
PENSTOCK_INITIAL_CREDITS: {{ .initialCredits | int64 | quote }}
{{- end }}
PENSTOCK_MAX_BODY_BYTES: {{ .maxBodyBytes | int | quote }}
{{- range $name, $value := .limits }}
PENSTOCK_{{ $name | snakecase | upper }}: {{ $value | int64 | quote }}
{{- end }}
PENSTOCK_AUDIT_DAYS: {{ .auditDays | int | quote }}
PENSTOCK_LOG_LEVEL: {{ .logLevel }}
{{- if eq $.Values.mode "local" }}
{{- /* It listens for the Services, and by itself no such start is a local one. */}}
PENSTOCK_LOCAL: "true"
PENSTOCK_DATA_DIR: /data/penstock
{{- /* By itself it would take as many as the node's cores ask for. */}}
PENSTOCK_PROCESSES: "1"
{{- end }}
{{- with .sync }}
PENSTOCK_SYNC: {{ . | quote }}
{{- end }}
{{- with .allowDestinations }}
PENSTOCK_ALLOW_DESTINATIONS: {{ join "," . | quote }}
{{- end }}
{{- with .destinationPorts }}
PENSTOCK_DESTINATION_PORTS: {{ join "," . | quote }}
{{- end }}
{{- with .dnsServers }}
PENSTOCK_DNS_SERVERS: {{ join "," . | quote }}
{{- end }}
{{- with .oidc.issuer }}
PENSTOCK_OIDC_ISSUER: {{ . | quote }}
{{- end }}
{{- with .oidc.audience }}
PENSTOCK_OIDC_AUDIENCE: {{ . | quote }}
{{- end }}
{{- with .oidc.jwksUrl }}
PENSTOCK_OIDC_JWKS_URL: {{ . | quote }}
{{- end }}
{{- if .catalog }}
PENSTOCK_CATALOG: /etc/penstock/catalog/catalog.json
{{- end }}
{{- end }}
{{- include "penstock.commonConfig" . }}
{{- end }}

{{/* Variables of every program. */}}
{{- define "penstock.commonConfig" -}}
{{- if .Values.trustedAuthorities.configMap }}
NODE_EXTRA_CA_CERTS: {{ printf "/etc/penstock/authorities/%s" .Values.trustedAuthorities.key | quote }}
{{- end }}
{{- range $name, $value := .Values.config.env }}
{{ $name | quote }}: {{ include "penstock.text" $value | quote }}
{{- end }}
{{- end }}

{{/* (root, values): the same as a list, but for what `env` of the values sets itself. */}}
{{- define "penstock.commonVariables" -}}
{{- $named := dict -}}
{{- range .values.env }}{{ $_ := set $named .name true }}{{ end -}}
{{- range $name, $value := include "penstock.commonConfig" .root | fromYaml }}
{{- if not (hasKey $named $name) }}
- name: {{ $name | quote }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* Helm holds the numbers of a values file as floats, and writes 1e+06 for a million. */}}
{{- define "penstock.text" -}}
{{- if and (kindIs "float64" .) (eq . (floor .)) }}{{ int64 . }}{{ else }}{{ . }}{{ end -}}
{{- end }}

{{/* (name, secret, key) */}}
{{- define "penstock.secretVariable" -}}
- name: {{ .name }}
  valueFrom:
    secretKeyRef: { name: {{ .secret | quote }}, key: {{ .key | quote }} }
{{- end }}

{{/* The password comes first: Kubernetes fills in only what stands above. */}}
{{- define "penstock.databaseVariables" -}}
{{- with .Values.database }}
{{- if .passwordSecret.name }}
{{ include "penstock.secretVariable" (dict "name" "DATABASE_PASSWORD" "secret" .passwordSecret.name "key" .passwordSecret.key) }}
{{- end }}
{{- if .urlSecret.name }}
{{ include "penstock.secretVariable" (dict "name" "PENSTOCK_DATABASE_URL" "secret" .urlSecret.name "key" .urlSecret.key) }}
{{- else if .url }}
- name: PENSTOCK_DATABASE_URL
  value: {{ .url | quote }}
{{- end }}
{{- end }}
{{- end }}

{{- define "penstock.natsVariables" -}}
{{- with .Values.nats }}
{{- if .passwordSecret.name }}
{{ include "penstock.secretVariable" (dict "name" "NATS_PASSWORD" "secret" .passwordSecret.name "key" .passwordSecret.key) }}
{{- end }}
{{- if .urlSecret.name }}
{{ include "penstock.secretVariable" (dict "name" "PENSTOCK_NATS_URL" "secret" .urlSecret.name "key" .urlSecret.key) }}
{{- else if .url }}
- name: PENSTOCK_NATS_URL
  value: {{ .url | quote }}
{{- end }}
{{- if .credsSecret.name }}
- name: PENSTOCK_NATS_CREDS
  value: {{ printf "/etc/penstock/nats/%s" .credsSecret.key | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* (root, component): what ingress, admin, actor and the local pod are told besides the ConfigMap. */}}
{{- define "penstock.serviceVariables" -}}
{{- include "penstock.databaseVariables" .root }}
{{- include "penstock.natsVariables" .root }}
{{- with .root.Values.encryptionKeySecret }}
{{- if .name }}
{{ include "penstock.secretVariable" (dict "name" "PENSTOCK_SECRET_KEY" "secret" .name "key" .key) }}
{{- end }}
{{- end }}
{{- $owners := include "penstock.ownerKeysSecret" .root }}
{{- if has .component (list "admin" "local") }}
{{- if $owners }}
{{ include "penstock.secretVariable" (dict "name" "PENSTOCK_OWNER_KEYS" "secret" $owners "key" .root.Values.ownerKeysSecret.key) }}
{{- end }}
{{- with .root.Values.stripe }}
{{- if .keySecret.name }}
{{ include "penstock.secretVariable" (dict "name" "PENSTOCK_STRIPE_KEY" "secret" .keySecret.name "key" .keySecret.key) }}
- name: PENSTOCK_STRIPE_RETURN_URL
  value: {{ .returnUrl | quote }}
{{- end }}
{{- if .webhookSecret.name }}
{{ include "penstock.secretVariable" (dict "name" "PENSTOCK_STRIPE_WEBHOOK_SECRETS" "secret" .webhookSecret.name "key" .webhookSecret.key) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Variables of the operator. */}}
{{- define "penstock.operatorVariables" -}}
{{- with .Values.operator }}
- name: PENSTOCK_HOST
  value: 0.0.0.0
- name: PENSTOCK_ADMIN_URL
  value: {{ .adminUrl | default (include "penstock.adminUrl" $) | quote }}
{{- if .adminAuthority.configMap }}
- name: PENSTOCK_ADMIN_CA_FILE
  value: {{ printf "/etc/penstock/admin/%s" .adminAuthority.key | quote }}
{{- end }}
{{- if .watchNamespaces }}
- name: PENSTOCK_WATCH_NAMESPACES
  value: {{ join "," .watchNamespaces | quote }}
{{- end }}
{{- end }}
- name: PENSTOCK_LEASE_NAMESPACE
  value: {{ .Release.Namespace | quote }}
- name: PENSTOCK_LEASE_NAME
  value: {{ printf "%s-operator" (include "penstock.fullname" .) | quote }}
- name: PENSTOCK_LOG_LEVEL
  value: {{ .Values.config.logLevel }}
{{- with .Values.operator.verifySeconds }}
- name: PENSTOCK_VERIFY_SECONDS
  value: {{ int . | quote }}
{{- end }}
{{- include "penstock.commonVariables" (dict "root" . "values" .Values.operator) }}
{{- end }}
