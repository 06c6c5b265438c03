{{/* What the schema cannot say: values that only make sense together. Each message names the value and the way out. */}}
{{- define "honest.checks" -}}
{{- $v := .Values -}}
{{- $tls := $v.web.tls -}}
{{- $wrong := list -}}
{{- if and (eq $v.source.type "dcgm") (eq $v.dcgm.mode "none") -}}
{{- $wrong = append $wrong "source.type dcgm needs dcgm.mode hostengine (with dcgm.address) or embedded" -}}
{{- end -}}
{{- if and (eq $v.dcgm.mode "hostengine") (not $v.dcgm.address) -}}
{{- $wrong = append $wrong "dcgm.mode hostengine needs dcgm.address, such as nvidia-dcgm.gpu-operator.svc:5555" -}}
{{- end -}}
{{- if and (ne $v.dcgm.mode "hostengine") $v.dcgm.address -}}
{{- $wrong = append $wrong (printf "dcgm.address is for dcgm.mode hostengine, not %s" $v.dcgm.mode) -}}
{{- end -}}
{{- if and (eq $v.source.type "dcgm-exporter") (not $v.source.url) -}}
{{- $wrong = append $wrong "source.type dcgm-exporter needs source.url, such as http://nvidia-dcgm-exporter.gpu-operator.svc:9400/metrics" -}}
{{- end -}}
{{- if and (ne $v.source.type "dcgm-exporter") $v.source.url -}}
{{- $wrong = append $wrong (printf "source.url is for source.type dcgm-exporter, not %s" $v.source.type) -}}
{{- end -}}
{{- if ne (eq $v.source.type "replay") (ne $v.source.path "") -}}
{{- $wrong = append $wrong "source.type replay and source.path need each other" -}}
{{- end -}}
{{- if and (ne $v.source.type "simulated") $v.source.workload -}}
{{- $wrong = append $wrong (printf "source.workload is for source.type simulated, not %s" $v.source.type) -}}
{{- end -}}
{{- if and $tls.enabled (eq (not $tls.existingSecret) (not $tls.certManager.enabled)) -}}
{{- $wrong = append $wrong "web.tls.enabled needs either web.tls.existingSecret or web.tls.certManager.enabled: the chart makes no certificates" -}}
{{- end -}}
{{- if and (not $tls.enabled) (or $tls.existingSecret $tls.certManager.enabled $tls.clientAuth.enabled) -}}
{{- $wrong = append $wrong "web.tls has settings but web.tls.enabled is false: nothing would be encrypted" -}}
{{- end -}}
{{- if and $tls.certManager.enabled (not $tls.certManager.issuerRef.name) -}}
{{- $wrong = append $wrong "web.tls.certManager.enabled needs web.tls.certManager.issuerRef.name" -}}
{{- end -}}
{{- if and $tls.clientAuth.enabled (not $tls.clientAuth.caSecret) -}}
{{- $wrong = append $wrong "web.tls.clientAuth.enabled needs web.tls.clientAuth.caSecret, with the authority in web.tls.clientAuth.caKey" -}}
{{- end -}}
{{- if and $v.web.basicAuth (not $v.web.existingConfigSecret) -}}
{{- $wrong = append $wrong "web.basicAuth needs web.existingConfigSecret, a Secret whose key web.yaml has basic_auth_users" -}}
{{- end -}}
{{- if and (eq $v.monitor.kind "ServiceMonitor") (not $v.service.enabled) -}}
{{- $wrong = append $wrong "monitor.kind ServiceMonitor needs service.enabled" -}}
{{- end -}}
{{- if and $v.priorityClass.create $v.priorityClassName -}}
{{- $wrong = append $wrong "priorityClass.create makes a class of its own: leave priorityClassName empty" -}}
{{- end -}}
{{- $kubernetes := $v.collectors.kubernetes -}}
{{- $api := $kubernetes.apiServer -}}
{{- range $key := list "labels" "podUID" "owner" "resourceSlices" -}}
{{- if and (index $api $key) (not (and $api.enabled $kubernetes.enabled)) -}}
{{- $needed := ternary "collectors.kubernetes.enabled" "collectors.kubernetes.apiServer.enabled" $api.enabled -}}
{{- $wrong = append $wrong (printf "collectors.kubernetes.apiServer.%s needs %s" $key $needed) -}}
{{- end -}}
{{- end -}}
{{- if and (ne $api.address "in-cluster") (not $api.enabled) -}}
{{- $wrong = append $wrong "collectors.kubernetes.apiServer.address is given but collectors.kubernetes.apiServer.enabled is false" -}}
{{- end -}}
{{- if and $api.enabled (not (or $kubernetes.enabled $v.collectors.processes.enabled)) -}}
{{- $wrong = append $wrong "collectors.kubernetes.apiServer.enabled needs collectors.kubernetes.enabled or collectors.processes.enabled: it adds to what they find" -}}
{{- end -}}
{{- $ours := list -}}
{{- range $api.labels }}{{ $ours = append $ours (regexReplaceAll "[^a-zA-Z0-9_]" . "_") }}{{ end -}}
{{- if ne (len $ours) (len (uniq $ours)) -}}
{{- $wrong = append $wrong (printf "collectors.kubernetes.apiServer.labels: two of %s would become the same label_NAME; leave one out" (join ", " $api.labels)) -}}
{{- end -}}
{{- if and $api.enabled (eq (include "honest.serviceAccount" .) "default") -}}
{{- $wrong = append $wrong "collectors.kubernetes.apiServer.enabled needs a service account of its own (serviceAccount.create, or serviceAccount.name): every pod of the namespace may use the account default" -}}
{{- end -}}
{{- if and $v.collectors.processes.families (not $v.collectors.processes.enabled) -}}
{{- $wrong = append $wrong "collectors.processes.families needs collectors.processes.enabled" -}}
{{- end -}}
{{- if $wrong }}{{ fail (printf "\n- %s\n" (join "\n- " $wrong)) }}{{ end -}}
{{- end -}}
