"""Which test holds each case of sections 5 and 6 of CASES: labels, joins, duplicates, processes, control groups."""

from __future__ import annotations

import re

import pytest

from tests.cases.test_covered import CASES, DCGM, NVML, functions_of

WHOSE = "tests/attribution"
KUBERNETES = f"{WHOSE}/kubernetes"

COVERED: dict[int, tuple[str, ...]] = {
    # 5: labels, joins, duplicates
    44: (
        f"{KUBERNETES}/test_attributor.py::test_replicas_name_all_holders_at_once",
        "tests/metrics/test_attribution.py::test_all_holders_of_a_shared_device_are_there_at_once_and_stay",
        "tests/metrics/test_attribution.py::test_labels_of_pods_are_on_the_join_series_alone",
    ),
    46: (
        f"{KUBERNETES}/test_device_ids.py::test_forms",
        f"{KUBERNETES}/test_attributor.py::test_unknown_ids_are_counted_and_said_once",
        f"{KUBERNETES}/test_attributor.py::test_a_renamed_resource_is_configured",
    ),
    47: (f"{KUBERNETES}/test_device_ids.py::test_forms",),
    49: (
        f"{KUBERNETES}/test_attributor.py::test_pods_and_their_devices",
        "tests/metrics/test_attribution.py::test_allocated_is_of_what_can_be_handed_out",
    ),
    50: (
        "tests/metrics/test_context.py::test_memory_of_an_instance_is_nvmls_where_dcgm_has_none",
        f"{NVML}/test_reading.py::test_instances_have_a_measurement_and_memory_and_no_claim",
        f"{DCGM}/test_mig.py::test_one_instance_that_is_blank_leaves_the_others_alone",
    ),
    52: (
        f"{KUBERNETES}/test_cluster.py::test_a_pod_that_has_ended_drops_out_although_the_kubelet_lists_it",
        f"{KUBERNETES}/test_cluster.py::test_a_container_that_has_ended_drops_out_and_its_pod_stays",
        "tests/end_to_end/test_pods.py::test_the_api_server_adds_labels_owners_claims_and_ends",
    ),
    54: (
        f"{WHOSE}/test_prolog.py::test_where_the_orders_differ_nothing_is_guessed",
        f"{WHOSE}/test_prolog.py::test_the_order_by_a_map",
        f"{KUBERNETES}/test_device_ids.py::test_forms",
        f"{NVML}/test_coming_and_going.py::test_gpus_that_change_places_keep_their_identity",
    ),
    57: (
        "tests/metrics/test_attribution.py::test_no_label_is_empty",
        "tests/packaging/test_chart_monitoring.py::test_labels_are_honoured_and_the_node_is_named",
    ),
    58: (
        f"{KUBERNETES}/test_cluster.py::test_devices_of_claims_are_found_by_resource_slices",
        f"{KUBERNETES}/test_cluster.py::test_older_apis_of_resource_slices",
    ),
    # 6: processes and control groups
    60: (
        f"{WHOSE}/test_cgroup.py::test_containers_of_the_captures",
        f"{WHOSE}/test_cgroup.py::test_container_forms",
    ),
    62: (f"{WHOSE}/test_processes.py::test_without_the_hosts_process_ids_nothing_is_claimed",),
    65: (
        f"{NVML}/test_hanging.py::test_it_costs_its_gpu_alone",
        "tests/core/test_sampler.py::test_a_hung_source_is_said_to_be_down_and_comes_back",
        "tests/core/test_pipeline.py::test_silence_makes_gauges_absent_without_a_failure",
        f"{KUBERNETES}/test_attributor.py::test_a_kubelet_that_hangs",
        f"{WHOSE}/test_background.py::test_after_a_failure_holders_are_believed_for_a_while_and_then_not",
    ),
}


@pytest.mark.parametrize("case", COVERED)
def test_the_tests_of_a_case_are_there(case: int) -> None:
    for name in COVERED[case]:
        path, _, function = name.partition("::")
        assert function in functions_of(path), f"case {case}: there is no {name}"


def test_no_case_is_left_out() -> None:
    if not CASES.exists():
        pytest.skip("the list of cases is not here")
    text = CASES.read_text()
    sections = text[text.index("\n## 5 ") : text.index("\n## Name change ")]
    assert {int(number) for number in re.findall(r"^\| (\d+) \|", sections, re.MULTILINE)} == set(COVERED)
