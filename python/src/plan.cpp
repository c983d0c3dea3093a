#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "moka/compute_plan.h"

namespace moka::python {

namespace nb = nanobind;

void bind_plan(nb::module_& m) {
  nb::class_<PlannedOperation> step(
      m, "PlannedOperation", "One step of a plan: an operation on a device, or a conversion that the planner added.");
  bind_report(step, "step_text", "step_html");
  step.def_ro("name", &PlannedOperation::name)
      .def_ro("type", &PlannedOperation::type)
      .def_ro("device", &PlannedOperation::device)
      .def_ro("kernel", &PlannedOperation::kernel)
      .def_ro("note", &PlannedOperation::note)
      .def_ro("fused", &PlannedOperation::fused, "Names of the operations that it also computes.")
      .def_ro("refusals", &PlannedOperation::refusals, "'device: reason' for each device asked before.")
      .def_ro("outputs", &PlannedOperation::outputs)
      .def_ro("layout", &PlannedOperation::layout)
      .def_ro("estimated_seconds", &PlannedOperation::estimated_seconds)
      .def_ro("measured_seconds", &PlannedOperation::measured_seconds, "-1 when not measured.")
      .def_ro("runs", &PlannedOperation::runs)
      .def_ro("chosen_by", &PlannedOperation::chosen_by, "'rule', 'pin', 'cache', 'measured' or 'disturbed'.")
      .def_ro("shape", &PlannedOperation::shape, "What the candidates' times are for; '': none.")
      .def_ro("kernel_by_rule", &PlannedOperation::kernel_by_rule)
      .def_prop_ro(
          "candidates",
          [](const PlannedOperation& p) {
            nb::dict out;
            for (const KernelTime& t : p.candidates) out[t.kernel.c_str()] = t.seconds;
            return out;
          },
          "Measured seconds by kernel.")
      .def_ro("depth", &PlannedOperation::depth);

  nb::class_<PassRemark>(m, "PassRemark")
      .def_ro("pass_name", &PassRemark::pass)
      .def_ro("text", &PassRemark::text)
      .def("__repr__", [](const PassRemark& r) { return r.pass + ": " + r.text; });

  nb::class_<ComputePlan> plan(m, "ComputePlan", "Where everything runs and why.");
  bind_report(plan, "plan_text", "plan_html");
  plan.def_ro("operations", &ComputePlan::operations)
      .def_ro("remarks", &ComputePlan::remarks)
      .def_ro("operations_in_source", &ComputePlan::operations_in_source)
      .def_ro("folded", &ComputePlan::folded, "Operations whose results were known before running.")
      .def_ro("arena_bytes", &ComputePlan::arena_bytes)
      .def_ro("unshared_bytes", &ComputePlan::unshared_bytes)
      .def_ro("packed_bytes", &ComputePlan::packed_bytes)
      .def_ro("cached_bytes", &ComputePlan::cached_bytes)
      .def_ro("measured_seconds", &ComputePlan::measured_seconds,
              "Time of a whole prediction, the median; -1 when not measured.")
      .def_ro("predictions", &ComputePlan::predictions, "How many were measured.")
      .def_ro("complete", &ComputePlan::complete,
              "False: what depends on values is planned when a prediction knows them.");
}

}  // namespace moka::python
