{{/*
(root, component): the number of pods of a Deployment, as YAML. `replicas`: what the manifest says; none: it is left to whoever
scales. `said`: the annotation by which the next upgrade knows of it, with the value `replicas` that is not followed.

A number that an autoscaler may change must be in no manifest: an upgrade or a rollback would set it again. But a manifest that
leaves the number out, after one that had it, makes it 1. So the number is left out where nothing of the release has it, and else
it is the one that runs now. What an autoscaler has set stays when autoscaling is turned off, until the value changes.
*/}}
{{- define "penstock.replicas" -}}
{{- $values := index .root.Values .component -}}
{{- $wanted := $values.replicas | int | toString -}}
{{- $scales := and (hasKey $values "autoscaling") $values.autoscaling.enabled -}}
{{- $name := printf "%s-%s" (include "penstock.fullname" .root) .component -}}
{{- $running := dict -}}
{{- if hasKey $values "autoscaling" -}}{{- $running = lookup "apps/v1" "Deployment" .root.Release.Namespace $name -}}{{- end -}}
{{- $said := dig "metadata" "annotations" "penstock.dev/replicas" "" $running -}}
{{- $owners := include "penstock.ownersOfReplicas" $running | fromYaml -}}
{{- $isLeftOut := or (hasPrefix "autoscaler" $said) (and $owners.applies (not $owners.alone)) -}}
{{- $isFollowed := not $scales -}}
{{- if and $running (not $scales) -}}
{{- if $said -}}
{{- $isFollowed = ne $said (printf "%s instead of %s" (splitList " " $said | first) $wanted) -}}
{{- else if or $owners.scaler $isLeftOut -}}
{{- /* The chart before this one wrote no annotation. */ -}}
{{- $isFollowed = empty (lookup "autoscaling/v2" "HorizontalPodAutoscaler" .root.Release.Namespace $name) -}}
{{- end -}}
{{- end -}}
{{- if $isFollowed -}}
replicas: {{ $wanted }}
{{- else if or (not $running) $isLeftOut -}}
said: autoscaler instead of {{ $wanted }}
{{- else -}}
replicas: {{ $running.spec.replicas }}
said: running instead of {{ $wanted }}
{{- end -}}
{{- end }}

{{/*
A Deployment or nothing: who has its number of pods, as YAML. `scaler`: somebody who scaled it. `applies`: the release is applied by
the server, which then knows what the release has. `alone`: the number is the release's alone, and goes with it.
*/}}
{{- define "penstock.ownersOfReplicas" -}}
{{- $applies := false -}}
{{- $applied := false -}}
{{- $others := false -}}
{{- $scaler := false -}}
{{- range dig "metadata" "managedFields" list . -}}
{{- $has := hasKey (dig "fieldsV1" "f:spec" dict .) "f:replicas" -}}
{{- if eq (get . "subresource") "scale" -}}
{{- $scaler = or $scaler $has -}}
{{- $others = or $others $has -}}
{{- else if eq .operation "Apply" -}}
{{- $applies = true -}}
{{- $applied = or $applied $has -}}
{{- else -}}
{{- $others = or $others $has -}}
{{- end -}}
{{- end -}}
applies: {{ $applies }}
alone: {{ and $applied (not $others) }}
scaler: {{ $scaler }}
{{- end }}
