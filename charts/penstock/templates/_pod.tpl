{{/*
(root, component, program, env): the pod template of a long-running program. `component` is also the name of its
values; `program` is what the image is told to run.
*/}}
{{- define "penstock.pod" -}}
{{- $root := .root -}}
{{- $values := index $root.Values .component -}}
{{- $of := merge (dict "values" $values) . -}}
{{- $isOperator := eq .component "operator" -}}
{{- $serves := has .component (list "ingress" "admin" "local") -}}
metadata:
  labels:
    {{- include "penstock.podLabels" $of | nindent 4 }}
    penstock.dev/ops: "true"
  annotations:
    kubectl.kubernetes.io/default-container: {{ .component }}
    {{- if not $isOperator }}
    checksum/config: {{ include "penstock.configChecksum" $root }}
    {{- end }}
    {{- with $values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "penstock.serviceAccountName" . | quote }}
  automountServiceAccountToken: {{ $isOperator }}
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ $root.Values.terminationGracePeriodSeconds }}
  {{- if eq .component "local" }}
  # Something must reap what a killed server of the pod leaves behind: with this, the pod's own init does.
  shareProcessNamespace: true
  {{- end }}
  {{- with include "penstock.imagePullSecrets" $root }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- with include "penstock.podSecurity" $of }}
  securityContext:
    {{- . | nindent 4 }}
  {{- end }}
  {{- with include "penstock.spread" $of | trim }}
  topologySpreadConstraints:
    {{- . | nindent 4 }}
  {{- end }}
  containers:
    - name: {{ .component }}
      image: {{ include "penstock.image" $root | quote }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      args: [{{ .program }}]
      {{- if or $values.envFrom (not $isOperator) }}
      envFrom:
        {{- with $values.envFrom }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        {{- if not $isOperator }}
        # The last one goes before the others.
        - configMapRef: { name: {{ printf "%s-config" (include "penstock.fullname" $root) | quote }} }
        {{- end }}
      {{- end }}
      {{- $further := "" }}
      {{- with $values.env }}{{ $further = toYaml . }}{{ end }}
      {{- with printf "%s\n%s" $further (.env | trim) | trim }}
      env:
        {{- . | nindent 8 }}
      {{- end }}
      ports:
        {{- if $serves }}
        - { name: http, containerPort: 8080 }
        {{- end }}
        - { name: ops, containerPort: 9464 }
      {{- range $name, $default := include "penstock.probes" . | fromYaml }}
      {{ $name }}:
        {{- include "penstock.probe" (dict "default" $default "values" (get $values $name)) | nindent 8 }}
      {{- end }}
      {{- if $serves }}
      lifecycle:
        # Until every proxy knows that the endpoint is gone, requests still come.
        preStop: { sleep: { seconds: 5 } }
      {{- end }}
      {{- with include "penstock.containerSecurity" $of }}
      securityContext:
        {{- . | nindent 8 }}
      {{- end }}
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

{{/* (root, component, values): the constraints of the values, or over zones and nodes; the one local pod has nothing to spread. */}}
{{- define "penstock.spread" -}}
{{- $selector := dict "matchLabels" (include "penstock.selectorLabels" . | fromYaml) -}}
{{- if .values.topologySpreadConstraints -}}
{{- range .values.topologySpreadConstraints }}
{{- $own := ternary dict (dict "labelSelector" $selector) (hasKey . "labelSelector") }}
- {{ merge dict . $own | toYaml | nindent 2 | trim }}
{{- end }}
{{- else if ne .component "local" -}}
{{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
- topologyKey: {{ . }}
  maxSkew: 1
  # Never DoNotSchedule: with the disruption budget it blocks the drain of two nodes for ever.
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    {{- toYaml $selector | nindent 4 }}
  matchLabelKeys: [pod-template-hash]
{{- end }}
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

{{/*
(root, component, values): the security context of a pod, as YAML; the values of all pods go before what is written here, and those
of the component before both. `null` takes a field away.
*/}}
{{- define "penstock.podSecurity" -}}
{{- $context := dict "runAsNonRoot" true "runAsUser" 1000 "runAsGroup" 1000 "seccompProfile" (dict "type" "RuntimeDefault") -}}
{{- if eq .component "local" -}}
{{- /* Once: a group that may write is refused by Postgres in its own folder. */ -}}
{{- $context = merge $context (dict "fsGroup" 1000 "fsGroupChangePolicy" "OnRootMismatch") -}}
{{- end -}}
{{- range list .root.Values.podSecurityContext .values.podSecurityContext -}}
{{- include "penstock.mergePatch" (dict "target" $context "patch" (. | default dict)) -}}
{{- end -}}
{{- with $context }}{{ toYaml . }}{{ end -}}
{{- end }}

{{/* (root, values): that of its container, likewise. */}}
{{- define "penstock.containerSecurity" -}}
{{- $context := dict "allowPrivilegeEscalation" false "readOnlyRootFilesystem" true "capabilities" (dict "drop" (list "ALL")) -}}
{{- range list .root.Values.containerSecurityContext .values.containerSecurityContext -}}
{{- include "penstock.mergePatch" (dict "target" $context "patch" (. | default dict)) -}}
{{- end -}}
{{- with $context }}{{ toYaml . }}{{ end -}}
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

{{/* (default, values): a probe; another handler of the values takes the place of the request. */}}
{{- define "penstock.probe" -}}
{{- $values := .values | default dict -}}
{{- range list "exec" "grpc" "tcpSocket" -}}
{{- if hasKey $values . }}{{ $_ := unset $.default "httpGet" }}{{ end -}}
{{- end -}}
{{- include "penstock.mergePatch" (dict "target" .default "patch" $values) -}}
{{- toYaml .default -}}
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
{{- if eq $.component "local" }}
{{- if not .local.persistence.enabled }}
- { name: data, emptyDir: { sizeLimit: {{ .local.persistence.size | quote }} } }
{{- else if .local.persistence.existingClaim }}
- { name: data, persistentVolumeClaim: { claimName: {{ .local.persistence.existingClaim | quote }} } }
{{- end }}
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
