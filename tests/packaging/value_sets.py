"""Sets of values that people install with, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PROMETHEUS = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
PASSWORD = {"username": {"name": "scrape", "key": "username"}, "password": {"name": "scrape", "key": "password"}}
OPERATOR_DCGM = "nvidia-dcgm.gpu-operator.svc:5555"
OPERATOR_EXPORTER = "http://nvidia-dcgm-exporter.gpu-operator.svc:9400/metrics"

VALUE_SETS: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "simulated": {"source": {"type": "simulated", "gpus": 2}, "gpuNodeLabels": [], "tolerations": []},
    "gpu-operator": {"runtimeClassName": "nvidia", "collectors": {"kubernetes": {"enabled": True}}},
    "hostengine": {"dcgm": {"mode": "hostengine", "address": OPERATOR_DCGM}, "networkPolicy": {"enabled": True}},
    "hostengine-of-the-node": {
        "source": {"type": "dcgm"},
        "dcgm": {"mode": "hostengine", "address": "$(NODE_IP):5555"},
    },
    "embedded": {"dcgm": {"mode": "embedded"}, "profiling": {"sysAdmin": True}, "runtimeClassName": "nvidia"},
    "dcgm-exporter": {
        "source": {"type": "dcgm-exporter", "url": OPERATOR_EXPORTER},
        "sampling": {"interval": "30s"},
        "networkPolicy": {"enabled": True, "from": [PROMETHEUS]},
    },
    "replay": {
        "source": {"type": "replay", "path": "/recordings/node.jsonl.gz"},
        "extraVolumes": [{"name": "recordings", "configMap": {"name": "recordings"}}],
        "extraVolumeMounts": [{"name": "recordings", "mountPath": "/recordings", "readOnly": True}],
    },
    "mig": {"profiling": {"migMonitor": True}},
    "processes": {"collectors": {"processes": {"enabled": True}, "host": {"processIo": True}}},
    "single-processes": {"collectors": {"processes": {"enabled": True, "families": True, "most": 16}}},
    "slurm": {"collectors": {"slurm": {"enabled": True}}},
    "jobstats": {"collectors": {"slurm": {"enabled": True}}, "compat": {"jobstats": True}},
    "api-server": {
        "collectors": {
            "kubernetes": {
                "enabled": True,
                "apiServer": {
                    "enabled": True,
                    "labels": ["team", "app.kubernetes.io/name"],
                    "podUID": True,
                    "owner": True,
                },
            }
        },
        "networkPolicy": {"enabled": True, "apiServer": {"cidrs": ["10.96.0.1/32", "192.0.2.0/28"]}},
    },
    "names-of-processes": {
        "collectors": {"kubernetes": {"apiServer": {"enabled": True}}, "processes": {"enabled": True}},
        "serviceAccount": {"create": False, "name": "gpu-exporter"},
    },
    "resource-slices": {
        "collectors": {
            "kubernetes": {
                "enabled": True,
                "apiServer": {"enabled": True, "address": "https://kube.example.org:16443", "resourceSlices": True},
            }
        },
        "networkPolicy": {"enabled": True},
    },
    "tls-and-password": {
        "web": {
            "tls": {"enabled": True, "existingSecret": "gpu-tls"},
            "existingConfigSecret": "gpu-web",
            "basicAuth": True,
        },
        "monitor": {"basicAuth": PASSWORD},
    },
    "mutual-tls": {
        "web": {
            "tls": {
                "enabled": True,
                "certManager": {"enabled": True, "issuerRef": {"name": "internal"}, "dnsNames": ["gpu.example.org"]},
                "clientAuth": {"enabled": True, "caSecret": "scrapers", "allowedNames": ["prometheus"]},
            }
        },
        "monitor": {
            "kind": "ServiceMonitor",
            "tlsConfig": {
                "ca": {"secret": {"name": "gpu-honest-gpu-exporter-tls", "key": "ca.crt"}},
                "cert": {"secret": {"name": "prometheus-client", "key": "tls.crt"}},
                "keySecret": {"name": "prometheus-client", "key": "tls.key"},
                "serverName": "gpu-honest-gpu-exporter.monitoring.svc",
            },
        },
    },
    "openshift": {
        "security": {"assignIds": False, "seLinuxOptions": {"type": "spc_t"}},
        "openshift": {"sccName": "honest-gpu-exporter"},
        "collectors": {"kubernetes": {"enabled": True}},
    },
    "air-gapped": {
        "image": {"registry": "registry.example.org:5000", "repository": "mirror/gpu", "digest": f"sha256:{'0' * 64}"},
        "imagePullSecrets": [{"name": "registry"}],
        "monitor": {"kind": "none"},
    },
    "small": {
        "metrics": {"profile": "minimal", "include": ["honest_gpu_power_watts"], "exclude": ["honest_gpu_ecc_*"]},
        "service": {"enabled": False},
        "serviceAccount": {"create": False},
        "resources": {"limits": None},
    },
    "everything": {
        "dcgm": {"mode": "embedded", "bindings": "/usr/share/datacenter-gpu-manager-4/bindings/python3"},
        "profiling": {"sysAdmin": True, "migMonitor": True},
        "collectors": {
            "host": {"processIo": True},
            "kubernetes": {
                "enabled": True,
                "resourceNames": ["nvidia.com/*", "example.org/gpu"],
                "replicas": "mps",
                "apiServer": {
                    "enabled": True,
                    "labels": ["team"],
                    "podUID": True,
                    "owner": True,
                    "resourceSlices": True,
                },
            },
            "processes": {"enabled": True, "families": True},
            "slurm": {"enabled": True},
        },
        "web": {"port": 19836, "tls": {"enabled": True, "existingSecret": "gpu-tls", "minVersion": "TLS13"}},
        "monitor": {
            "labels": {"release": "prometheus"},
            "relabelings": [{"targetLabel": "cluster", "replacement": "east"}],
            "metricRelabelings": [{"action": "labeldrop", "regex": "pod_uid"}],
        },
        "rules": {"enabled": True, "thresholds": {"divergence_busy": 0.8}, "labels": {"role": "alert-rules"}},
        "dashboards": {"enabled": True, "annotations": {"grafana_folder": "GPU"}},
        "networkPolicy": {"enabled": True, "from": [PROMETHEUS], "extraEgress": [{"ports": [{"port": 8080}]}]},
        "priorityClass": {"create": True},
        "nodeSelector": {"pool": "gpu"},
        "hostNetwork": True,
        "podAnnotations": {"example.org/owner": "gpu-team"},
        "podLabels": {"team": "gpu"},
        "extraEnv": [{"name": "TZ", "value": "UTC"}],
        "extraConfig": {"cost": {"price-per-hour": ["*H100*=2.50"], "currency": "EUR"}},
        "security": {"supplementalGroups": [4]},
        "runtimeClassName": "nvidia",
    },
}
