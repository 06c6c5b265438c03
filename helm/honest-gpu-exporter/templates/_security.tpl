{{/* Capabilities that features bring, as a JSON list. */}}
{{- define "honest.capabilities" -}}
{{- $added := list -}}
{{- if or .Values.profiling.sysAdmin .Values.profiling.migMonitor }}{{ $added = append $added "SYS_ADMIN" }}{{ end -}}
{{- if .Values.collectors.host.processIo }}{{ $added = append $added "SYS_PTRACE" }}{{ end -}}
{{- $added | toJson -}}
{{- end -}}

{{/* Not empty where a feature needs user 0: a capability has no effect for another user, and the kubelet's socket is root's. */}}
{{- define "honest.root" -}}
{{- if or .Values.collectors.kubernetes.enabled (include "honest.capabilities" . | fromJsonArray) }}yes{{ end -}}
{{- end -}}

{{- define "honest.podSecurity" -}}
{{- $s := .Values.security -}}
seccompProfile: {type: RuntimeDefault}
{{- if include "honest.root" . }}
runAsNonRoot: false
runAsUser: 0
runAsGroup: 0
{{- else }}
runAsNonRoot: true
{{- if $s.assignIds }}
runAsUser: {{ int64 $s.runAsUser }}
runAsGroup: {{ int64 $s.runAsGroup }}
fsGroup: {{ int64 $s.runAsGroup }}
{{- end }}
{{- end }}
{{- with $s.supplementalGroups }}
supplementalGroups: {{ toJson . }}
{{- end }}
{{- with $s.seLinuxOptions }}
seLinuxOptions: {{ toJson . }}
{{- end }}
{{- end -}}

{{- define "honest.containerSecurity" -}}
allowPrivilegeEscalation: false
privileged: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
  {{- with include "honest.capabilities" . | fromJsonArray }}
  add: {{ toJson . }}
  {{- end }}
{{- end -}}
