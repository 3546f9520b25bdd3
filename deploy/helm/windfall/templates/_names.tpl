{{- define "windfall.name" -}}{{ printf "%s" .Release.Name | trunc 50 | trimSuffix "-" }}{{- end }}
{{- define "windfall.labels" -}}
app.kubernetes.io/name: windfall
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
{{- define "windfall.selector" -}}
app.kubernetes.io/name: windfall
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "windfall.image" -}}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{- end }}
{{/* What every container here may do: nothing but run. */}}
{{- define "windfall.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  runAsNonRoot: true
  runAsUser: 65532
  capabilities: { drop: [ALL] }
  seccompProfile: { type: RuntimeDefault }
{{- end }}
