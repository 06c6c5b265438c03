{{/* PodMonitor, ServiceMonitor or nothing. */}}
{{- define "honest.monitorKind" -}}
{{- if ne .Values.monitor.kind "auto" -}}
{{- .Values.monitor.kind -}}
{{- else -}}
{{- ternary "PodMonitor" "none" (.Capabilities.APIVersions.Has "monitoring.coreos.com/v1") -}}
{{- end -}}
{{- end -}}

{{/* How to scrape: the same for both kinds. */}}
{{- define "honest.endpoint" -}}
{{- $m := .Values.monitor -}}
port: metrics
path: {{ .Values.web.telemetryPath }}
scheme: {{ include "honest.scheme" . }}
interval: {{ $m.interval }}
scrapeTimeout: {{ $m.scrapeTimeout }}
honorLabels: {{ $m.honorLabels }}
{{- if $m.tlsConfig }}
tlsConfig: {{- toYaml $m.tlsConfig | nindent 2 }}
{{- else if .Values.web.tls.enabled }}
tlsConfig:
  ca: {secret: {name: {{ include "honest.tlsSecret" . }}, key: ca.crt}}
  serverName: {{ include "honest.fullname" . }}.{{ .Release.Namespace }}.svc
{{- end }}
{{- with $m.basicAuth }}
basicAuth: {{- toYaml . | nindent 2 }}
{{- end }}
relabelings:
  - {sourceLabels: [__meta_kubernetes_pod_node_name], targetLabel: node, action: replace}
  {{- with $m.relabelings }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with $m.metricRelabelings }}
metricRelabelings: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
