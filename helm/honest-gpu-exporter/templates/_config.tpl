{{/* The exporter's YAML file. Addresses are in the environment instead, where $(NODE_IP) is filled in. */}}
{{- define "honest.config" -}}
{{- $v := .Values -}}
{{- $source := dict "type" $v.source.type -}}
{{- $config := dict
  "sampling" (dict "interval" $v.sampling.interval)
  "log" (dict "level" $v.log.level "format" $v.log.format)
  "metrics" (dict "profile" $v.metrics.profile)
  "collector" (dict "host" $v.collectors.host.enabled "kubernetes" $v.collectors.kubernetes.enabled
    "processes" $v.collectors.processes.enabled "slurm" $v.collectors.slurm.enabled)
  "web" (dict "listen-address" (list (printf ":%d" (int $v.web.port))) "telemetry-path" $v.web.telemetryPath) -}}
{{- with $v.source.path }}{{ $_ := set $source "path" . }}{{ end -}}
{{- if eq $v.source.type "simulated" -}}
{{- $_ := set $source "gpus" (int $v.source.gpus) -}}
{{- with $v.source.workload }}{{ $_ := set $source "workload" . }}{{ end -}}
{{- end -}}
{{- $_ := set $config "source" $source -}}
{{- if eq $v.source.type "auto" }}{{ $_ := set $config "wait-for-gpus" $v.source.waitForGpus }}{{ end -}}
{{- with $v.dcgm.bindings }}{{ $_ := set $config "dcgm" (dict "bindings" .) }}{{ end -}}
{{- with $v.metrics.include }}{{ $_ := set $config.metrics "include" . }}{{ end -}}
{{- with $v.metrics.exclude }}{{ $_ := set $config.metrics "exclude" . }}{{ end -}}
{{- if $v.compat.jobstats }}{{ $_ := set $config "compat" (dict "jobstats" true) }}{{ end -}}
{{- $kubernetes := dict -}}
{{- with $v.collectors.kubernetes -}}
{{- if .enabled -}}
{{- $kubernetes = dict "pod-resources-socket" (printf "%s/kubelet.sock" .podResourcesFolder)
  "resource-names" .resourceNames "replicas" .replicas -}}
{{- end -}}
{{- with .apiServer -}}
{{- if .enabled -}}
{{- $kubernetes = merge $kubernetes (dict "api-server" .address "pod-uid" .podUID "pod-owner" .owner
  "resource-slices" .resourceSlices) -}}
{{- with .labels }}{{ $_ := set $kubernetes "pod-labels" . }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with $kubernetes }}{{ $_ := set $config "kubernetes" . }}{{ end -}}
{{- with $v.collectors.processes -}}
{{- if .families }}{{ $_ := set $config "processes" (dict "families" true "most" (int .most)) }}{{ end -}}
{{- end -}}
{{- if $v.collectors.slurm.enabled }}{{ $_ := set $config "slurm" (dict "jobs-folder" $v.collectors.slurm.jobsFolder) }}{{ end -}}
{{- if include "honest.webConfigured" . }}{{ $_ := set $config.web "config" (dict "file" "/etc/honest-gpu-exporter/web/web.yaml") }}{{ end -}}
{{- mergeOverwrite $config (deepCopy $v.extraConfig) | toYaml -}}
{{- end -}}

{{/* Not empty where there is a web configuration file. */}}
{{- define "honest.webConfigured" -}}
{{- if or .Values.web.tls.enabled .Values.web.existingConfigSecret }}yes{{ end -}}
{{- end -}}

{{/* The web configuration that the chart writes itself: names of files, no secret. */}}
{{- define "honest.webConfig" -}}
{{- $tls := .Values.web.tls -}}
tls_server_config:
  cert_file: /etc/honest-gpu-exporter/tls/tls.crt
  key_file: /etc/honest-gpu-exporter/tls/tls.key
  min_version: {{ $tls.minVersion }}
  {{- if $tls.clientAuth.enabled }}
  client_auth_type: RequireAndVerifyClientCert
  client_ca_file: /etc/honest-gpu-exporter/client-ca/{{ $tls.clientAuth.caKey }}
  {{- with $tls.clientAuth.allowedNames }}
  client_allowed_sans: {{ toJson . }}
  {{- end }}
  {{- end }}
{{- end -}}

{{- define "honest.tlsSecret" -}}
{{- .Values.web.tls.existingSecret | default (printf "%s-tls" (include "honest.fullname" .)) -}}
{{- end -}}

{{- define "honest.scheme" -}}
{{- ternary "https" "http" .Values.web.tls.enabled -}}
{{- end -}}

{{- define "honest.probeMode" -}}
{{- if ne .Values.probes.mode "auto" -}}
{{- .Values.probes.mode -}}
{{- else -}}
{{- ternary "tcp" "http" (or .Values.web.basicAuth .Values.web.tls.clientAuth.enabled) -}}
{{- end -}}
{{- end -}}

{{/* One probe; called with the context and a path. */}}
{{- define "honest.probe" -}}
{{- if eq (include "honest.probeMode" .context) "tcp" -}}
tcpSocket: {port: metrics}
{{- else -}}
httpGet: {path: {{ .path }}, port: metrics, scheme: {{ include "honest.scheme" .context | upper }}}
{{- end }}
{{- end -}}
