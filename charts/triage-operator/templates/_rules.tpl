{{- /* Made by hack/generate.py from operator/triage_operator/permissions.py; edit that. */}}
{{- define "triage-operator.workRules" }}
- apiGroups: ["triage-operator.dev"]
  resources: [triageruns]
  verbs: [get, list, watch, delete]
- apiGroups: ["triage-operator.dev"]
  resources: [triageruns/status]
  verbs: [update]
- apiGroups: ["triage-operator.dev"]
  resources: [triageagents]
  verbs: [get, list, watch]
- apiGroups: ["triage-operator.dev"]
  resources: [triageagents/status]
  verbs: [update]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, delete]
- apiGroups: [""]
  resources: [pods/resize]
  verbs: [patch]
- apiGroups: [""]
  resources: [events]
  verbs: [create]
{{- end }}
{{- define "triage-operator.nodeRules" }}
- apiGroups: [""]
  resources: [nodes]
  verbs: [list, watch]
{{- end }}
