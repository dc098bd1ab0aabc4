{{/*
(text, from, path): an object of the release as it is applied. `from` holds what its values say, at `path`: `merge`, an RFC 7396
merge patch, and then `patch`, an RFC 6902 JSON patch. Without either the text stays as it is.
*/}}
{{- define "penstock.object" -}}
{{- $merge := dig "merge" dict (.from | default dict) -}}
{{- $patch := dig "patch" list (.from | default dict) -}}
{{- if or $merge $patch -}}
{{- $object := .text | fromYaml -}}
{{- include "penstock.mergePatch" (dict "target" $object "patch" ($merge | default dict)) -}}
{{- $held := dict "v" $object -}}
{{- range $index, $operation := $patch -}}
{{- $at := printf "%s.patch[%d]: %s %s" $.path $index $operation.op $operation.path -}}
{{- $held = include "penstock.patchOperation" (dict "object" $held.v "operation" $operation "at" $at) | fromJson -}}
{{- end -}}
{{- toYaml $held.v -}}
{{- else -}}
{{- .text | trim -}}
{{- end -}}
{{- end }}

{{/* (target, patch): changes the map `target`; null takes a field away. Prints nothing. */}}
{{- define "penstock.mergePatch" -}}
{{- $target := .target -}}
{{- range $key, $value := .patch -}}
{{- if kindIs "invalid" $value -}}
{{- $_ := unset $target $key -}}
{{- else if kindIs "map" $value -}}
{{- if not (kindIs "map" (get $target $key)) -}}{{- $_ := set $target $key dict -}}{{- end -}}
{{- include "penstock.mergePatch" (dict "target" (get $target $key) "patch" $value) -}}
{{- else -}}
{{- $_ := set $target $key (deepCopy $value) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* (object, operation, at): the object afterwards, as JSON below `v`. `at` begins the message of a failure. */}}
{{- define "penstock.patchOperation" -}}
{{- $op := .operation.op -}}
{{- $object := .object -}}
{{- $value := dict "v" (get .operation "value") -}}
{{- if has $op (list "move" "copy") -}}
{{- if not (hasKey .operation "from") -}}{{- fail (printf "%s: from is required" .at) -}}{{- end -}}
{{- $value = include "penstock.pointed" (dict "node" $object "pointer" .operation.from "at" .at) | fromJson -}}
{{- else if and (ne $op "remove") (not (hasKey .operation "value")) -}}
{{- fail (printf "%s: value is required" .at) -}}
{{- end -}}
{{- if eq $op "test" -}}
{{- $found := include "penstock.pointed" (dict "node" $object "pointer" .operation.path "at" .at) | fromJson -}}
{{- if ne (toJson $found) (toJson $value) -}}{{- fail (printf "%s: it is %s" .at (toJson $found.v)) -}}{{- end -}}
{{- toJson (dict "v" $object) -}}
{{- else -}}
{{- if eq $op "move" -}}
{{- if hasPrefix (printf "%s/" .operation.from) .operation.path -}}{{- fail (printf "%s: it lies within %s" .at .operation.from) -}}{{- end -}}
{{- $from := include "penstock.tokens" (dict "pointer" .operation.from "at" .at) | fromJsonArray -}}
{{- $object = (include "penstock.changed" (dict "node" $object "tokens" $from "op" "remove" "at" .at) | fromJson).v -}}
{{- end -}}
{{- $tokens := include "penstock.tokens" (dict "pointer" .operation.path "at" .at) | fromJsonArray -}}
{{- $op = ternary "add" $op (has $op (list "move" "copy")) -}}
{{- include "penstock.changed" (dict "node" $object "tokens" $tokens "op" $op "value" $value.v "at" .at) -}}
{{- end -}}
{{- end }}

{{/* (pointer, at): the parts of a JSON pointer, as a JSON array. */}}
{{- define "penstock.tokens" -}}
{{- if not (hasPrefix "/" .pointer) -}}{{- fail (printf "%s: %q is no path to a field; it begins with /" .at .pointer) -}}{{- end -}}
{{- $tokens := list -}}
{{- range splitList "/" (trimPrefix "/" .pointer) -}}
{{- $tokens = append $tokens (. | replace "~1" "/" | replace "~0" "~") -}}
{{- end -}}
{{- toJson $tokens -}}
{{- end }}

{{/* (node, pointer, at): what is there, as JSON below `v`. */}}
{{- define "penstock.pointed" -}}
{{- $node := .node -}}
{{- range include "penstock.tokens" . | fromJsonArray -}}
{{- $child := include "penstock.child" (dict "node" $node "token" . "at" $.at) | fromJson -}}
{{- $node = $child.v -}}
{{- end -}}
{{- toJson (dict "v" $node) -}}
{{- end }}

{{/* (node, token, at): the child of that name, or at that place, as JSON below `v`; fails when there is none. */}}
{{- define "penstock.child" -}}
{{- if and (kindIs "map" .node) (hasKey .node .token) -}}
{{- toJson (dict "v" (get .node .token)) -}}
{{- else if and (kindIs "slice" .node) (regexMatch "^(0|[1-9][0-9]{0,8})$" .token) (lt (atoi .token) (len .node)) -}}
{{- toJson (dict "v" (index .node (atoi .token))) -}}
{{- else -}}
{{- fail (printf "%s: there is no %q" .at .token) -}}
{{- end -}}
{{- end }}

{{/* (node, tokens, op, value, at): the node after an add, a remove or a replacement at `tokens`, as JSON below `v`. */}}
{{- define "penstock.changed" -}}
{{- $node := .node -}}
{{- $token := first .tokens -}}
{{- $isEnd := eq (len .tokens) 1 -}}
{{- $isAdded := and $isEnd (eq .op "add") -}}
{{- $value := .value -}}
{{- if not $isAdded -}}
{{- $child := include "penstock.child" (dict "node" $node "token" $token "at" .at) | fromJson -}}
{{- if not $isEnd -}}
{{- $further := dict "node" $child.v "tokens" (rest .tokens) "op" .op "value" .value "at" .at -}}
{{- $value = (include "penstock.changed" $further | fromJson).v -}}
{{- end -}}
{{- end -}}
{{- $isGone := and $isEnd (eq .op "remove") -}}
{{- if kindIs "map" $node -}}
{{- if $isGone -}}{{- $_ := unset $node $token -}}{{- else -}}{{- $_ := set $node $token $value -}}{{- end -}}
{{- else if kindIs "slice" $node -}}
{{- if not (or (regexMatch "^(0|[1-9][0-9]{0,8})$" $token) (and $isAdded (eq $token "-"))) -}}{{- fail (printf "%s: %q is no place in a list" .at $token) -}}{{- end -}}
{{- $place := ternary (len $node) (atoi $token) (eq $token "-") -}}
{{- if gt $place (len $node) -}}{{- fail (printf "%s: the list ends before %q" .at $token) -}}{{- end -}}
{{- $before := slice $node 0 $place -}}
{{- $after := slice $node (ternary $place (add1 $place | int) $isAdded) -}}
{{- $node = concat $before (ternary list (list $value) $isGone) $after -}}
{{- else -}}
{{- fail (printf "%s: %q is in no object" .at $token) -}}
{{- end -}}
{{- toJson (dict "v" $node) -}}
{{- end }}
