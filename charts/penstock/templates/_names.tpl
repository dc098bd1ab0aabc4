{{- define "penstock.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 47 | trimSuffix "-" -}}
{{- end }}

{{/* Names leave room for the longest suffix within the 63 characters of a label. */}}
{{- define "penstock.fullname" -}}
{{- $name := include "penstock.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 47 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 47 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 47 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{/* What every object of the release carries; immutable selectors stand on it. */}}
{{- define "penstock.instanceLabels" -}}
app.kubernetes.io/name: {{ include "penstock.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/* (root, component) */}}
{{- define "penstock.selectorLabels" -}}
{{ include "penstock.instanceLabels" .root }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* (root, component[, labels]): the labels of an object, and further ones. */}}
{{- define "penstock.labels" -}}
{{- $own := include "penstock.selectorLabels" . | fromYaml -}}
{{- $_ := set $own "app.kubernetes.io/version" .root.Chart.AppVersion -}}
{{- $_ := set $own "app.kubernetes.io/managed-by" .root.Release.Service -}}
{{- $_ := set $own "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_") -}}
{{- $fallback := dict "app.kubernetes.io/part-of" "penstock" -}}
{{- toYaml (merge dict (.labels | default dict) $own (.root.Values.commonLabels | default dict) $fallback) -}}
{{- end }}

{{/* (root, component[, labels, annotations]) */}}
{{- define "penstock.metadata" -}}
name: {{ printf "%s-%s" (include "penstock.fullname" .root) .component | quote }}
namespace: {{ .root.Release.Namespace | quote }}
labels:
  {{- include "penstock.labels" . | nindent 2 }}
{{- with .annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The labels of pods, (root, component, values): those of the values, and those that the chart selects by. */}}
{{- define "penstock.podLabels" -}}
{{- $own := include "penstock.selectorLabels" . | fromYaml -}}
{{- toYaml (merge dict $own (.values.podLabels | default dict) (.root.Values.commonLabels | default dict)) -}}
{{- end }}

{{/*
(root, component): the account of the pods. All that say nothing of it share one; only the operator has its own in any case, for
its rights.
*/}}
{{- define "penstock.serviceAccountName" -}}
{{- $account := dig "serviceAccount" dict (index .root.Values .component) -}}
{{- $fullname := include "penstock.fullname" .root -}}
{{- if $account.name -}}
{{- $account.name -}}
{{- else if not (dig "create" true $account) -}}
default
{{- else if or (eq .component "operator") $account.annotations $account.merge $account.patch -}}
{{- printf "%s-%s" $fullname .component -}}
{{- else -}}
{{- $fullname -}}
{{- end -}}
{{- end }}

{{- define "penstock.image" -}}
{{- with .Values.image -}}
{{- with .registry }}{{ . }}/{{ end -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The roles of the mode that have pods for as long as the release runs, as a JSON array. */}}
{{- define "penstock.roles" -}}
{{- $roles := ternary (list "local") (list "ingress" "admin" "actor") (eq .Values.mode "local") -}}
{{- toJson (ternary (append $roles "operator") $roles .Values.operator.enabled) -}}
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
