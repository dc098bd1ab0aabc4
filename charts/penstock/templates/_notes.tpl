{{/* Names of hosts: the first one that can be called; empty: none. A wildcard takes any name. */}}
{{- define "penstock.host" -}}
{{- $hosts := . | default list -}}
{{- range $hosts -}}{{- if not (hasPrefix "*" .) -}}{{- $hosts = list . -}}{{- end -}}{{- end -}}
{{- with $hosts }}{{ first . | replace "*" "penstock" }}{{ end -}}
{{- end }}

{{/* (root, component): where the values lead to from outside of the cluster; empty: nowhere, or the address is not known yet. */}}
{{- define "penstock.outside" -}}
{{- $expose := dig "expose" dict (index .root.Values .component) -}}
{{- $ingress := dig "ingress" dict $expose -}}
{{- $route := dig "httpRoute" dict $expose -}}
{{- if $ingress.enabled -}}
{{- with include "penstock.host" $ingress.hosts -}}
{{- $host := . -}}
{{- $scheme := "http" -}}
{{- range $ingress.tls -}}
{{- if eq (include "penstock.host" (.hosts | default $ingress.hosts)) $host }}{{ $scheme = "https" }}{{ end -}}
{{- if has $host (.hosts | default list) }}{{ $scheme = "https" }}{{ end -}}
{{- end -}}
{{- $scheme }}://{{ $host }}
{{- end -}}
{{- else if $route.enabled -}}
{{- with include "penstock.host" $route.hostnames }}https://{{ . }}{{ end -}}
{{- end -}}
{{- end }}

{{/*
(root, component, variable, port, probe): commands that wait until the component answers and leave its URL in the variable. `probe` is
what is asked for, as arguments of curl; `port` is one of this machine that leads there where nothing else does. A redirect is no
answer: behind it the key would go out once more, or in clear text.
*/}}
{{- define "penstock.reach" -}}
{{- $kubectl := printf "kubectl -n %s" .root.Release.Namespace -}}
{{- $name := printf "%s-%s" (include "penstock.fullname" .root) .component -}}
{{- $values := index .root.Values .component -}}
{{- $route := dig "expose" "httpRoute" dict $values -}}
{{- $url := include "penstock.outside" . -}}
{{- $try := printf "curl -sSfL --max-redirs 0 -m 5 -o /dev/null $%s%s" .variable .probe -}}
{{- if dig "expose" "ingress" "enabled" false $values -}}
{{- include "penstock.untilAddress" (dict "kubectl" $kubectl "object" (printf "ingress/%s" $name)) }}
{{ .variable }}={{ $url | default (include "penstock.addressOf" (dict "kubectl" $kubectl "object" (printf "ingress/%s" $name))) }}
{{- else if $route.enabled -}}
{{- $gateway := first $route.parentRefs -}}
{{ $kubectl }} wait httproute/{{ $name }} --for=jsonpath='{.status.parents[0].conditions[?(@.type=="Accepted")].status}'=True --timeout=300s
{{- $host := trimPrefix "https://" $url | default (printf "$(kubectl -n %s get gateway %s -o jsonpath='{.status.addresses[0].value}')" ($gateway.namespace | default .root.Release.Namespace) $gateway.name) }}
{{ .variable }}=https://{{ $host }}
{{- else if eq $values.service.type "LoadBalancer" -}}
{{- include "penstock.untilAddress" (dict "kubectl" $kubectl "object" (printf "service/%s" $name)) }}
{{ .variable }}={{ include "penstock.addressOf" (dict "kubectl" $kubectl "object" (printf "service/%s" $name)) }}:{{ $values.service.port }}
{{- else -}}
{{ $kubectl }} rollout status {{ ternary "statefulset" "deployment" (eq .component "local") }}/{{ $name }} --timeout=300s
{{ $kubectl }} port-forward service/{{ $name }} {{ .port }}:http > /dev/null &
{{ .variable }}=http://127.0.0.1:{{ .port }}
{{- end }}
until {{ $try }}; do sleep 2; done
{{- end }}

{{/* (kubectl, object) */}}
{{- define "penstock.untilAddress" -}}
{{ .kubectl }} wait {{ .object }} --for=jsonpath='{.status.loadBalancer.ingress}' --timeout=300s
{{- end }}

{{/* (kubectl, object) */}}
{{- define "penstock.addressOf" -}}
http://$({{ .kubectl }} get {{ .object }} -o jsonpath='{.status.loadBalancer.ingress[0].ip}{.status.loadBalancer.ingress[0].hostname}')
{{- end }}
