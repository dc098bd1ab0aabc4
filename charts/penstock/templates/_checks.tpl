{{/* What a schema cannot say, in one line that names the value. */}}
{{- define "penstock.checks" -}}
{{- with .Values }}
{{- if eq .image.tag "latest" }}
{{- fail "image.tag must name a version, not latest" }}
{{- end }}
{{- if eq .mode "cluster" }}
{{- if not (or .nats.url .nats.urlSecret.name) }}
{{- fail "nats.url or nats.urlSecret.name is required with mode: cluster (mode: local brings a NATS along)" }}
{{- end }}
{{- if not (or .database.url .database.urlSecret.name) }}
{{- fail "database.url or database.urlSecret.name is required with mode: cluster (mode: local brings a Postgres along)" }}
{{- end }}
{{- if not .encryptionKeySecret.name }}
{{- fail "encryptionKeySecret.name is required with mode: cluster" }}
{{- end }}
{{- $actors := ternary .actor.autoscaling.maxReplicas .actor.replicas .actor.autoscaling.enabled }}
{{- if gt (int $actors) (int .config.shards) }}
{{- fail (printf "config.shards: %d shards cannot occupy %d actors" (int .config.shards) (int $actors)) }}
{{- end }}
{{- range $role := list "ingress" "actor" }}
{{- with index $.Values $role "autoscaling" }}
{{- if gt (int .minReplicas) (int .maxReplicas) }}
{{- fail (printf "%s.autoscaling.minReplicas is above maxReplicas" $role) }}
{{- end }}
{{- end }}
{{- end }}
{{- else if and (not .nats.url) (not .nats.urlSecret.name) (gt (int .config.replicas) 1) }}
{{- fail "config.replicas must be 1 with the one NATS of mode: local" }}
{{- end }}
{{- range $part := list "nats" "database" }}
{{- with index $.Values $part }}
{{- if and .url .urlSecret.name }}
{{- fail (printf "%s.url and %s.urlSecret exclude each other" $part $part) }}
{{- end }}
{{- end }}
{{- end }}
{{- if and .nats.credsSecret.name (not (or .nats.url .nats.urlSecret.name)) }}
{{- fail "nats.url is required with nats.credsSecret" }}
{{- end }}
{{- if ne (empty .config.oidc.issuer) (empty .config.oidc.audience) }}
{{- fail "config.oidc.issuer and config.oidc.audience are required together" }}
{{- end }}
{{- end }}
{{- end }}
