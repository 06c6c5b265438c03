{{/* The release's name, with the chart's behind it unless it is in it already. */}}
{{- define "honest.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Never changes between versions and values: a DaemonSet's selector cannot be changed. */}}
{{- define "honest.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "honest.labels" -}}
{{ include "honest.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "honest.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "honest.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- define "honest.image" -}}
{{- $image := .Values.image -}}
{{- $suffix := ternary "" "-dcgm" (and (eq .Values.dcgm.mode "none") (ne .Values.source.type "dcgm")) -}}
{{- with $image.registry }}{{ trimSuffix "/" . }}/{{ end -}}
{{- $image.repository -}}
{{- if $image.digest -}}@{{ $image.digest }}{{- else -}}:{{ $image.tag | default (printf "%s%s" .Chart.AppVersion $suffix) }}{{- end -}}
{{- end -}}

{{- define "honest.priorityClass" -}}
{{- if .Values.priorityClass.create -}}
{{ .Release.Namespace }}-{{ include "honest.fullname" . }}
{{- else -}}
{{ .Values.priorityClassName }}
{{- end -}}
{{- end -}}
