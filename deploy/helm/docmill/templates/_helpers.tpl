{{- define "docmill.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag }}
{{- end -}}
{{- end -}}

{{- define "docmill.labels" -}}
app.kubernetes.io/name: docmill
{{- end -}}

{{- define "docmill.settings" -}}
{{- $settings := dict -}}
{{- range .Files.Lines "settings.env" -}}
{{- if contains "=" . -}}
{{- $pair := splitn "=" 2 . -}}
{{- $_ := set $settings $pair._0 $pair._1 -}}
{{- end -}}
{{- end -}}
{{- range $name, $value := .Values.settings -}}
{{- $_ := set $settings $name (toString $value) -}}
{{- end -}}
{{- toYaml $settings -}}
{{- end -}}
