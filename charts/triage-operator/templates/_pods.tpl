{{- /* The restricted Pod Security Standard, for a pod and for a container. */}}
{{- define "triage-operator.podSecurity" -}}
runAsNonRoot: true
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "triage-operator.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "triage-operator.databaseEnv" -}}
- name: TRIAGE_OPERATOR_DATABASE_URL
  valueFrom:
    secretKeyRef:
      {{- include "triage-operator.urlSecret" (list . .Values.database.urlSecret "database.urlSecret") | nindent 6 }}
{{- with .Values.database.directUrlSecret }}
{{- if .name }}
- name: TRIAGE_OPERATOR_DATABASE_DIRECT_URL
  valueFrom:
    secretKeyRef:
      name: {{ .name }}
      key: {{ .key }}
{{- end }}
{{- end }}
- name: TRIAGE_OPERATOR_DATABASE_POOLER
  value: {{ .Values.database.pooler }}
{{- end }}

{{- /* What `check` and `run` share. */}}
{{- define "triage-operator.scopeEnv" -}}
{{- with .Values.watchNamespaces }}
- name: TRIAGE_OPERATOR_NAMESPACE
  value: {{ join " " . | quote }}
{{- end }}
- name: TRIAGE_OPERATOR_LEASE_NAME
  value: {{ include "triage-operator.fullname" . }}
- name: TRIAGE_OPERATOR_LEASE_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
{{- end }}

{{- /* Every number comes as a float here, and a large one would be written with an exponent. */}}
{{- define "triage-operator.settingsEnv" -}}
{{- range $name, $value := .Values.settings }}
- name: TRIAGE_OPERATOR_{{ $name | snakecase | upper }}
  {{- if and (kindIs "float64" $value) (eq $value (floor $value)) }}
  value: {{ int64 $value | quote }}
  {{- else }}
  value: {{ $value | quote }}
  {{- end }}
{{- end }}
{{- end }}
