{{- define "triage-operator.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "triage-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "triage-operator.labels" -}}
{{ include "triage-operator.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "triage-operator.operatorLabels" -}}
{{ include "triage-operator.selectorLabels" . }}
app.kubernetes.io/component: operator
{{- end }}

{{- /* Labels that the operator gives to each agent pod. */}}
{{- define "triage-operator.agentPodLabels" -}}
app.kubernetes.io/managed-by: triage-operator
app.kubernetes.io/component: agent
{{- end }}

{{- define "triage-operator.serviceAccountName" -}}
{{- if .Values.serviceAccount.name -}}
{{- .Values.serviceAccount.name -}}
{{- else if .Values.serviceAccount.create -}}
{{- include "triage-operator.fullname" . -}}
{{- else -}}
default
{{- end -}}
{{- end }}

{{- /* Takes an image's values and the chart's appVersion as a list. */}}
{{- define "triage-operator.image" -}}
{{- $image := index . 0 -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default (index . 1) $image.tag) -}}
{{- end -}}
{{- end }}

{{- define "triage-operator.postgresName" -}}
{{- printf "%s-postgres" (include "triage-operator.fullname" .) -}}
{{- end }}

{{- /* Secret and key of a database URL as a secretKeyRef. Takes the root, the value and its name as a list. */}}
{{- define "triage-operator.urlSecret" -}}
{{- $root := index . 0 -}}
{{- $secret := index . 1 -}}
{{- if $secret.name -}}
name: {{ $secret.name }}
key: {{ $secret.key }}
{{- else if $root.Values.postgres.enabled -}}
name: {{ include "triage-operator.postgresName" $root }}
key: url
{{- else -}}
{{- fail (printf "set %s.name to a Secret with the database's URL, or postgres.enabled for a trial" (index . 2)) -}}
{{- end -}}
{{- end }}

{{- /*
The definitions come with this very release the first time, and Helm looks up every kind before it creates anything.
Hence what is of our kinds waits for the end of the first installation as a hook. From then on it is an ordinary part of
the release, which Helm takes over since it says whose it is.
*/}}
{{- define "triage-operator.ownKindAnnotations" -}}
meta.helm.sh/release-name: {{ .Release.Name }}
meta.helm.sh/release-namespace: {{ .Release.Namespace }}
{{- if not (.Capabilities.APIVersions.Has "triage-operator.dev/v1alpha1/TriageAgent") }}
helm.sh/hook: post-install,post-upgrade,post-rollback
{{- end }}
{{- end }}
