#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "moka/compute_plan.h"

namespace moka::python {

namespace nb = nanobind;

void bind_plan(nb::module_& m) {
  nb::class_<PlannedOperation>(m, "PlannedOperation",
                               "One step of a plan: an operation on a device, or a conversion that the planner added.")
      .def_ro("name", &PlannedOperation::name)
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
      .def_ro("depth", &PlannedOperation::depth)
      .def("__repr__", [](const PlannedOperation& p) {
        return p.type + " '" + p.name + "' on " + p.device + (p.kernel.empty() ? "" : " (" + p.kernel + ")");
      });

  nb::class_<PassRemark>(m, "PassRemark").def_ro("pass_name", &PassRemark::pass).def_ro("text", &PassRemark::text);

  nb::class_<ComputePlan>(m, "ComputePlan", "Where everything runs and why.")
      .def_ro("operations", &ComputePlan::operations)
      .def_ro("remarks", &ComputePlan::remarks)
      .def_ro("operations_in_source", &ComputePlan::operations_in_source)
      .def_ro("folded", &ComputePlan::folded, "Operations whose results were known before running.")
      .def_ro("arena_bytes", &ComputePlan::arena_bytes)
      .def_ro("unshared_bytes", &ComputePlan::unshared_bytes)
      .def_ro("packed_bytes", &ComputePlan::packed_bytes)
      .def_ro("cached_bytes", &ComputePlan::cached_bytes)
      .def_ro("measured_seconds", &ComputePlan::measured_seconds, "Of the whole prediction; -1 when not measured.");
}

}  // namespace moka::python
