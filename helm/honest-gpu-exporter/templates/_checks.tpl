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
{{- if $wrong }}{{ fail (printf "\n- %s\n" (join "\n- " $wrong)) }}{{ end -}}
{{- end -}}
