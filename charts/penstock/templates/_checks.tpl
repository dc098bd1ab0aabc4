{{/* What a schema cannot say, in one line that names the value. */}}
{{- define "penstock.checks" -}}
{{- with .Values }}
{{- $fullname := include "penstock.fullname" $ }}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $fullname) }}
{{- fail (printf "fullnameOverride is required with the release name %s: %s is no name of a Service (lower-case letters, digits and hyphens, a letter first)" $.Release.Name $fullname) }}
{{- end }}
{{- if eq .image.tag "latest" }}
{{- fail "image.tag must name a version, not latest" }}
{{- end }}
{{- if and .image.registry (hasPrefix (printf "%s/" .image.registry) .image.repository) }}
{{- fail (printf "image.repository must not begin with image.registry, which goes before it: %s" .image.repository) }}
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
{{- range $role := list "ingress" "admin" "actor" "operator" }}
{{- $values := index $.Values $role }}
{{- $pods := ternary (dig "autoscaling" "minReplicas" 0 $values) $values.replicas (dig "autoscaling" "enabled" false $values) }}
{{- $least := dig "pdb" "minAvailable" "" $values }}
{{- if and (not (kindIs "string" $least)) (ge (int $least) (int $pods)) (dig "pdb" "enabled" true $values) }}
{{- fail (printf "%s.pdb.minAvailable must be below %d, the least number of pods: else no node can be drained" $role (int $pods)) }}
{{- end }}
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
{{- with .networkPolicy }}
{{- if and .enabled (eq $.Values.mode "local") (ne (empty .ingressFrom) (empty .adminFrom)) }}
{{- fail "networkPolicy.ingressFrom and networkPolicy.adminFrom are required together with mode: local, whose one port takes both" }}
{{- end }}
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
{{- if ne (empty .stripe.keySecret.name) (empty .stripe.returnUrl) }}
{{- fail "stripe.keySecret.name and stripe.returnUrl are required together" }}
{{- end }}
{{- if and .stripe.webhookSecret.name (not .stripe.keySecret.name) }}
{{- fail "stripe.keySecret.name is required with stripe.webhookSecret" }}
{{- end }}
{{- $own := include "penstock.ownVariables" $ | fromYaml }}
{{- range $name, $_ := .config.env }}
{{- with index $own $name }}
{{- fail (printf "config.env.%s is not yours to set: the chart does, %s" $name .) }}
{{- end }}
{{- end }}
{{- range $role := list "ingress" "admin" "actor" "operator" "local" "migrate" "test" }}
{{- $seen := dict }}
{{- if eq $role "test" }}{{ $own = merge (dict "INGRESS_URL" "for the test" "ADMIN_URL" "for the test" "OWNER_KEYS" "by ownerKeysSecret") $own }}{{ end }}
{{- range (index $.Values $role | default dict).env }}
{{- if hasKey $own .name }}
{{- fail (printf "%s.env: %s is not yours to set: the chart does, %s" $role .name (get $own .name)) }}
{{- end }}
{{- if hasKey $seen .name }}
{{- fail (printf "%s.env: %s is there twice" $role .name) }}
{{- end }}
{{- $_ := set $seen .name true }}
{{- end }}
{{- end }}
{{- range $role := ternary (list "local") (list "ingress" "admin") (eq .mode "local") }}
{{- include "penstock.serviceChecks" (dict "role" $role "service" (index $.Values $role).service) }}
{{- end }}
{{- range $role := ternary (list "local") (list "ingress" "admin") (eq .mode "local") }}
{{- $route := dig "expose" "httpRoute" dict (index $.Values $role) }}
{{- if and $route.enabled (not $route.parentRefs) }}
{{- fail (printf "%s.expose.httpRoute.parentRefs is required: it names the Gateway" $role) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* The rights of the operator are those of its account, so no other pod may run as it. */}}
{{- define "penstock.operatorAccountChecks" -}}
{{- $own := include "penstock.serviceAccountName" (dict "root" . "component" "operator") }}
{{- if eq $own "default" }}
{{- fail "operator.serviceAccount.name is required with create: false: the account gets the rights of the operator" }}
{{- end }}
{{- $accounts := dict }}
{{- range $role := without (include "penstock.roles" . | fromJsonArray) "operator" }}
{{- $_ := set $accounts $role (include "penstock.serviceAccountName" (dict "root" $ "component" $role)) }}
{{- end }}
{{- if eq .Values.mode "cluster" }}{{ $_ := set $accounts "migrate" .Values.migrate.serviceAccountName }}{{ end }}
{{- if include "penstock.ownerKeysSecret" . }}{{ $_ := set $accounts "test" (dig "serviceAccountName" "" (.Values.test | default dict)) }}{{ end }}
{{- range $program, $account := $accounts }}
{{- if eq $own ($account | default "default") }}
{{- fail (printf "operator.serviceAccount.name must be of the operator alone: the pods of %s run as %s too, and would get its rights" $program $own) }}
{{- end }}
{{- end }}
{{- end }}

{{/* (role, service): fields that the API server takes with some types alone. */}}
{{- define "penstock.serviceChecks" -}}
{{- $needs := dict "nodePort" "NodePort or LoadBalancer" "externalTrafficPolicy" "NodePort or LoadBalancer" }}
{{- range list "loadBalancerClass" "loadBalancerSourceRanges" "healthCheckNodePort" }}{{ $_ := set $needs . "LoadBalancer" }}{{ end }}
{{- range $field, $types := $needs }}
{{- if and (get $.service $field) (not (has $.service.type (splitList " or " $types))) }}
{{- fail (printf "%s.service.%s needs the type %s" $.role $field $types) }}
{{- end }}
{{- end }}
{{- end }}

{{/* All variables that the chart sets, and by what: a second one would fail an install half-way, or go before. */}}
{{- define "penstock.ownVariables" -}}
PENSTOCK_HOST: for the probes
PENSTOCK_PORT: for the Services
PENSTOCK_OPS_PORT: for the probes
PENSTOCK_SHARDS: by config.shards
PENSTOCK_REPLICAS: by config.replicas
PENSTOCK_SUBJECTS: by config.subjects
PENSTOCK_LOCAL: by mode
PENSTOCK_INITIAL_CREDITS: by config.initialCredits
PENSTOCK_MAX_BODY_BYTES: by config.maxBodyBytes
PENSTOCK_KEY_REQUESTS_PER_SECOND: by config.limits
PENSTOCK_TESTS_PER_MINUTE: by config.limits
PENSTOCK_SIGN_UPS_PER_MINUTE: by config.limits
PENSTOCK_MAX_CUSTOMERS: by config.limits
PENSTOCK_MAX_PROJECTS: by config.limits
PENSTOCK_MAX_BUFFERS: by config.limits
PENSTOCK_AUDIT_DAYS: by config.auditDays
PENSTOCK_LOG_LEVEL: by config.logLevel
PENSTOCK_SYNC: by config.sync
PENSTOCK_DATA_DIR: for the volume
PENSTOCK_PROCESSES: for the memory of the pod
PENSTOCK_ALLOW_DESTINATIONS: by config.allowDestinations
PENSTOCK_DESTINATION_PORTS: by config.destinationPorts
PENSTOCK_DNS_SERVERS: by config.dnsServers
PENSTOCK_OIDC_ISSUER: by config.oidc.issuer
PENSTOCK_OIDC_AUDIENCE: by config.oidc.audience
PENSTOCK_OIDC_JWKS_URL: by config.oidc.jwksUrl
PENSTOCK_CATALOG: by config.catalog
PENSTOCK_DATABASE_URL: by database
DATABASE_PASSWORD: by database.passwordSecret
PENSTOCK_NATS_URL: by nats
NATS_PASSWORD: by nats.passwordSecret
PENSTOCK_NATS_CREDS: by nats.credsSecret
PENSTOCK_SECRET_KEY: by encryptionKeySecret
PENSTOCK_OWNER_KEYS: by ownerKeysSecret
PENSTOCK_STRIPE_KEY: by stripe.keySecret
PENSTOCK_STRIPE_WEBHOOK_SECRETS: by stripe.webhookSecret
PENSTOCK_STRIPE_RETURN_URL: by stripe.returnUrl
PENSTOCK_ADMIN_URL: by operator.adminUrl
PENSTOCK_ADMIN_CA_FILE: by operator.adminAuthority
PENSTOCK_WATCH_NAMESPACES: by operator.watchNamespaces
{{- if .Values.operator.verifySeconds }}
PENSTOCK_VERIFY_SECONDS: by operator.verifySeconds
{{- end }}
PENSTOCK_LEASE_NAMESPACE: for the operator
PENSTOCK_LEASE_NAME: for the operator
NODE_EXTRA_CA_CERTS: by trustedAuthorities
{{- end }}
