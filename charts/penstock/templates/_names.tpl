{{/* Names leave room for the longest suffix within the 63 characters of a label. */}}
{{- define "penstock.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 47 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 47 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 47 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{/* What every object of the release carries; immutable selectors stand on it. */}}
{{- define "penstock.instanceLabels" -}}
app.kubernetes.io/name: penstock
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/* (root, component) */}}
{{- define "penstock.selectorLabels" -}}
{{ include "penstock.instanceLabels" .root }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* (root, component) */}}
{{- define "penstock.labels" -}}
{{ include "penstock.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: penstock
app.kubernetes.io/managed-by: {{ .root.Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{/* (root, component) */}}
{{- define "penstock.metadata" -}}
name: {{ printf "%s-%s" (include "penstock.fullname" .root) .component | quote }}
namespace: {{ .root.Release.Namespace | quote }}
labels:
  {{- include "penstock.labels" . | nindent 2 }}
{{- end }}

{{- define "penstock.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Where webhooks go and where the management API is, within the cluster. */}}
{{- define "penstock.ingressUrl" -}}
{{- include "penstock.serviceUrl" (dict "root" . "component" (ternary "local" "ingress" (eq .Values.mode "local"))) -}}
{{- end }}

{{- define "penstock.adminUrl" -}}
{{- include "penstock.serviceUrl" (dict "root" . "component" (ternary "local" "admin" (eq .Values.mode "local"))) -}}
{{- end }}

{{- define "penstock.serviceUrl" -}}
{{- $port := int (index .root.Values .component).service.port -}}
http://{{ include "penstock.fullname" .root }}-{{ .component }}.{{ .root.Release.Namespace }}.svc{{ if ne $port 80 }}:{{ $port }}{{ end }}
{{- end }}

{{/* Name of the Secret with owner keys; empty: none. */}}
{{- define "penstock.ownerKeysSecret" -}}
{{- if .Values.ownerKeysSecret.name -}}
{{ .Values.ownerKeysSecret.name }}
{{- else if eq .Values.mode "local" -}}
{{ include "penstock.fullname" . }}-owner-keys
{{- end -}}
{{- end }}
