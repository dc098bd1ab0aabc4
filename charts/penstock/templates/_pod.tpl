{{/*
(root, component, program, env): the pod template of a long-running program. `component` is also the name of its
values; `program` is what the image is told to run.
*/}}
{{- define "penstock.pod" -}}
{{- $root := .root -}}
{{- $values := index $root.Values .component -}}
{{- $isOperator := eq .component "operator" -}}
{{- $isLocal := eq .component "local" -}}
{{- $serves := has .component (list "ingress" "admin" "local") -}}
metadata:
  labels:
    {{- include "penstock.selectorLabels" . | nindent 4 }}
    penstock.dev/ops: "true"
    {{- with $values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    kubectl.kubernetes.io/default-container: {{ .component }}
    {{- if not $isOperator }}
    checksum/config: {{ printf "%s%s" (include "penstock.config" $root) ($root.Values.config.catalog | toJson) | sha256sum }}
    {{- end }}
    {{- with $values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ printf "%s%s" (include "penstock.fullname" $root) (ternary "-operator" "" $isOperator) | quote }}
  automountServiceAccountToken: {{ $isOperator }}
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ $root.Values.terminationGracePeriodSeconds }}
  {{- if $isLocal }}
  # Something must reap what a killed server of the pod leaves behind: with this, the pod's own init does.
  shareProcessNamespace: true
  {{- end }}
  {{- with include "penstock.imagePullSecrets" $root }}
  {{- . | nindent 2 }}
  {{- end }}
  securityContext:
    {{- include "penstock.podSecurity" $root | nindent 4 }}
    {{- if $isLocal }}
    fsGroup: 1000
    # Once: a group that may write is refused by Postgres in its own folder.
    fsGroupChangePolicy: OnRootMismatch
    {{- end }}
  {{- if not $isLocal }}
  topologySpreadConstraints:
    {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
    - topologyKey: {{ . }}
      maxSkew: 1
      # Never DoNotSchedule: with the disruption budget it blocks the drain of two nodes for ever.
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "penstock.selectorLabels" $ | nindent 10 }}
      matchLabelKeys: [pod-template-hash]
    {{- end }}
  {{- end }}
  containers:
    - name: {{ .component }}
      image: {{ include "penstock.image" $root | quote }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      args: [{{ .program }}]
      {{- if not $isOperator }}
      envFrom:
        - configMapRef: { name: {{ printf "%s-config" (include "penstock.fullname" $root) | quote }} }
      {{- end }}
      {{- with .env }}
      env:
        {{- . | trim | nindent 8 }}
      {{- end }}
      ports:
        {{- if $serves }}
        - { name: http, containerPort: 8080 }
        {{- end }}
        - { name: ops, containerPort: 9464 }
      {{- include "penstock.probes" . | nindent 6 }}
      {{- if $serves }}
      lifecycle:
        # Until every proxy knows that the endpoint is gone, requests still come.
        preStop: { sleep: { seconds: 5 } }
      {{- end }}
      securityContext:
        {{- include "penstock.containerSecurity" $root | nindent 8 }}
      resources:
        {{- toYaml $values.resources | nindent 8 }}
      {{- with include "penstock.mounts" . | trim }}
      volumeMounts:
        {{- . | nindent 8 }}
      {{- end }}
  {{- with include "penstock.volumes" . | trim }}
  volumes:
    {{- . | nindent 4 }}
  {{- end }}
  {{- with include "penstock.placement" $values | trim }}
  {{- . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* The values of a component: which nodes take its pods, and which pods go first. */}}
{{- define "penstock.placement" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- end }}

{{- define "penstock.imagePullSecrets" -}}
{{- with .Values.imagePullSecrets -}}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "penstock.podSecurity" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "penstock.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{/*
The ops port is there from the first moment of a start; ready is only who has all that a request needs. A first start of many
pods on a busy node took over a minute until then, and a restart only makes that longer.
*/}}
{{- define "penstock.probes" -}}
startupProbe:
  httpGet: { path: /live, port: ops }
  periodSeconds: 1
  failureThreshold: 300
readinessProbe:
  httpGet: { path: /ready, port: ops }
  periodSeconds: 5
  timeoutSeconds: 3
livenessProbe:
  httpGet: { path: /live, port: ops }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
{{- end }}

{{/* (root, component) */}}
{{- define "penstock.mounts" -}}
{{- with .root.Values -}}
{{- if eq $.component "local" }}
- { name: data, mountPath: /data }
{{- end }}
{{- if .trustedAuthorities.configMap }}
- { name: authorities, mountPath: /etc/penstock/authorities, readOnly: true }
{{- end }}
{{- if eq $.component "operator" }}
{{- if .operator.adminAuthority.configMap }}
- { name: admin-authority, mountPath: /etc/penstock/admin, readOnly: true }
{{- end }}
{{- else }}
{{- if .nats.credsSecret.name }}
- { name: nats-creds, mountPath: /etc/penstock/nats, readOnly: true }
{{- end }}
{{- if .config.catalog }}
- { name: catalog, mountPath: /etc/penstock/catalog, readOnly: true }
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* (root, component) */}}
{{- define "penstock.volumes" -}}
{{- with .root.Values -}}
{{- if and (eq $.component "local") (not .local.persistence.enabled) }}
- { name: data, emptyDir: { sizeLimit: {{ .local.persistence.size | quote }} } }
{{- end }}
{{- if .trustedAuthorities.configMap }}
- { name: authorities, configMap: { name: {{ .trustedAuthorities.configMap | quote }} } }
{{- end }}
{{- if eq $.component "operator" }}
{{- if .operator.adminAuthority.configMap }}
- { name: admin-authority, configMap: { name: {{ .operator.adminAuthority.configMap | quote }} } }
{{- end }}
{{- else }}
{{- if .nats.credsSecret.name }}
- { name: nats-creds, secret: { secretName: {{ .nats.credsSecret.name | quote }} } }
{{- end }}
{{- if .config.catalog }}
- { name: catalog, configMap: { name: {{ printf "%s-catalog" (include "penstock.fullname" $.root) | quote }} } }
{{- end }}
{{- end }}
{{- end }}
{{- end }}
