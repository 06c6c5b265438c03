{{/* Environment. The driver is mounted only where this pod reads it. */}}
{{- define "honest.environment" -}}
{{- $v := .Values -}}
{{- $driver := not (has $v.source.type (list "dcgm-exporter" "replay" "simulated")) -}}
- {name: NVIDIA_VISIBLE_DEVICES, value: {{ ternary "all" "void" $driver }}}
- {name: NVIDIA_DRIVER_CAPABILITIES, value: utility}
{{- if $v.profiling.migMonitor }}
- {name: NVIDIA_MIG_MONITOR_DEVICES, value: all}
{{- end }}
{{- if or $v.source.url $v.dcgm.address }}
- name: NODE_IP
  valueFrom: {fieldRef: {fieldPath: status.hostIP}}
{{- end }}
{{- if $v.collectors.kubernetes.apiServer.enabled }}
- name: HONEST_GPU_KUBERNETES_NODE_NAME
  valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
{{- end }}
{{- with $v.source.url }}
- {name: HONEST_GPU_SOURCE_URL, value: {{ quote . }}}
{{- end }}
{{- with ternary "embedded" $v.dcgm.address (eq $v.dcgm.mode "embedded") }}
- {name: HONEST_GPU_DCGM_ADDRESS, value: {{ quote . }}}
{{- end }}
{{- with $v.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Everything read-only. Whole folders: a file mounted alone (subPath) never changes. */}}
{{- define "honest.mounts" -}}
{{- $v := .Values -}}
- {name: config, mountPath: /etc/honest-gpu-exporter/config, readOnly: true}
{{- if include "honest.webConfigured" . }}
- {name: web, mountPath: /etc/honest-gpu-exporter/web, readOnly: true}
{{- end }}
{{- if $v.web.tls.enabled }}
- {name: tls, mountPath: /etc/honest-gpu-exporter/tls, readOnly: true}
{{- end }}
{{- if $v.web.tls.clientAuth.enabled }}
- {name: client-ca, mountPath: /etc/honest-gpu-exporter/client-ca, readOnly: true}
{{- end }}
{{- with $v.collectors.kubernetes }}
{{- if .enabled }}
- {name: pod-resources, mountPath: {{ .podResourcesFolder }}, readOnly: true}
{{- end }}
{{- end }}
{{- if $v.collectors.kubernetes.apiServer.enabled }}
- {name: api-server, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}
{{- end }}
{{- with $v.collectors.slurm }}
{{- if .enabled }}
- {name: slurm-jobs, mountPath: {{ .jobsFolder }}, readOnly: true, mountPropagation: HostToContainer}
{{- end }}
{{- end }}
{{- if eq $v.dcgm.mode "embedded" }}
- {name: tmp, mountPath: /tmp}
{{- end }}
{{- with $v.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Files of Secrets are for the owner and the pod's group only. */}}
{{- define "honest.volumes" -}}
{{- $v := .Values -}}
- name: config
  configMap: {name: {{ include "honest.fullname" . }}-config}
{{- if $v.web.existingConfigSecret }}
- name: web
  secret: {secretName: {{ $v.web.existingConfigSecret }}, defaultMode: 0440}
{{- else if $v.web.tls.enabled }}
- name: web
  configMap: {name: {{ include "honest.fullname" . }}-web}
{{- end }}
{{- if $v.web.tls.enabled }}
- name: tls
  secret: {secretName: {{ include "honest.tlsSecret" . }}, defaultMode: 0440}
{{- end }}
{{- if $v.web.tls.clientAuth.enabled }}
- name: client-ca
  secret:
    secretName: {{ $v.web.tls.clientAuth.caSecret }}
    defaultMode: 0440
    items: [{key: {{ $v.web.tls.clientAuth.caKey }}, path: {{ $v.web.tls.clientAuth.caKey }}}]
{{- end }}
{{- with $v.collectors.kubernetes }}
{{- if .enabled }}
- name: pod-resources
  hostPath: {path: {{ .podResourcesFolder }}, type: Directory}
{{- end }}
{{- end }}
{{- if $v.collectors.kubernetes.apiServer.enabled }}
- name: api-server
  projected:
    # Both are for this pod only, whatever the mode: on the node their folder is root's. A kubelet narrows the token's.
    defaultMode: 0444
    sources:
      # An hour. A token that is mounted by default asks for 3607 seconds, which the API server takes for a year.
      - serviceAccountToken: {path: token, expirationSeconds: 3600}
      - configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}
{{- end }}
{{- with $v.collectors.slurm }}
{{- if .enabled }}
- name: slurm-jobs
  hostPath: {path: {{ .jobsFolder }}, type: Directory}
{{- end }}
{{- end }}
{{- if eq $v.dcgm.mode "embedded" }}
- name: tmp
  emptyDir: {medium: Memory, sizeLimit: 16Mi}
{{- end }}
{{- with $v.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
