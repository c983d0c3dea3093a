/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOKA_C_PLAN_H
#define MOKA_C_PLAN_H

/* Compute plans in C: a part of moka/moka.h. */

#include "moka/c_core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a prediction of these inputs runs. NULL `inputs`: the default shapes. With `predictions` above 0 it also
 * measures: one warm-up, that many predictions with every operation timed, and that many without. The plan outlives the
 * model. */
MOKA_API moka_status moka_model_compute_plan(const moka_model* model, const moka_features* inputs, int predictions,
                                             moka_compute_plan** plan);
MOKA_API void moka_compute_plan_free(moka_compute_plan* plan);

/* One step: an operation on a device, or a step that the planner added. Texts are "" where there is nothing to say.
 * Start from MOKA_PLANNED_OPERATION_INIT. */
typedef struct moka_planned_operation {
  size_t struct_size;    /* sizeof(moka_planned_operation) of the caller */
  const char* name;      /* of the operation in the source model */
  const char* type;      /* "conv" */
  const char* device;    /* as in moka_configuration; "executor" for control flow */
  const char* kernel;    /* "cpu.conv.onednn" */
  const char* note;      /* detail such as the library's implementation */
  const char* layout;    /* of the first result */
  const char* chosen_by; /* how the kernel was chosen: "rule", "pin", "cache", "measured", "disturbed" */
  const char* reason;    /* why a transfer happens here */
  double estimated_seconds;
  double measured_seconds; /* median time per prediction; -1: not measured */
  double cost;             /* its part of the plan's estimated time, 0 to 1; control flow: with what is inside it */
  int64_t runs;            /* how often the step ran in a measured prediction */
  int depth;               /* nesting depth of the block */
  int region;              /* number of the device's submission that has it, from 0; -1: on the host */
  size_t bytes;            /* size of a transfer */
  size_t fused_count;      /* names of the operations that this step also computes */
  const char* const* fused;
  size_t refusal_count; /* "device: reason" for each device that refused it first */
  const char* const* refusals;
  size_t output_count; /* types of the results as MIL text */
  const char* const* outputs;
  size_t bid_count; /* for moka_compute_plan_bid */
} moka_planned_operation;
#define MOKA_PLANNED_OPERATION_INIT                                                                                  \
  {                                                                                                                  \
    sizeof(moka_planned_operation), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, NULL, 0, \
        NULL, 0, NULL, 0                                                                                             \
  }
MOKA_API size_t moka_compute_plan_operation_count(const moka_compute_plan* plan);
MOKA_API moka_status moka_compute_plan_operation(const moka_compute_plan* plan, size_t index,
                                                 moka_planned_operation* operation);

/* A device's estimate for an operation, or its refusal. Start from MOKA_UNIT_BID_INIT. */
typedef struct moka_unit_bid {
  size_t struct_size;  /* sizeof(moka_unit_bid) of the caller */
  const char* device;  /* as in moka_configuration */
  const char* unit;    /* by Core ML's name: "gpu", "neuralEngine" */
  double seconds;      /* estimated time by the rates in use */
  const char* refusal; /* why the device refuses the operation; "": it takes it */
  const char* remedy;  /* what to write instead; "": not known */
  const char* source;  /* the public source of the rule that refuses; "": the device itself does */
} moka_unit_bid;
#define MOKA_UNIT_BID_INIT \
  { sizeof(moka_unit_bid), NULL, NULL, 0, NULL, NULL, NULL }
/* The bid `index` for an operation; the host's is the first. */
MOKA_API moka_status moka_compute_plan_bid(const moka_compute_plan* plan, size_t operation, size_t index,
                                           moka_unit_bid* bid);

/* A plan as a whole. Start from MOKA_PLAN_TOTALS_INIT. */
typedef struct moka_plan_totals {
  size_t struct_size;       /* sizeof(moka_plan_totals) of the caller */
  double estimated_seconds; /* sum over the operations; of control flow, over those inside it */
  double measured_seconds;  /* median time of a whole prediction without timing its operations; -1: not measured */
  int predictions;          /* number of measured predictions */
  int complete;             /* 0: the steps after the last one depend on values */
  /* What the choice between units compared, in seconds per prediction; zeros when only one unit was asked. */
  double compute_seconds, transfer_seconds, launch_seconds;
  double host_seconds;         /* everything on the host; infinite: it cannot */
  int is_optimal;              /* 1: no assignment costs less; 0: none was found that does */
  const char* rates;           /* source of the costs: a file, or "table": the kernels' estimates */
  size_t operations_in_source; /* operations of the function, without constants */
  size_t folded;               /* operations that were computed while loading */
  size_t arena_bytes;          /* memory of all values when they share it */
  size_t unshared_bytes;       /* memory of all values if they did not share it */
  size_t packed_bytes;         /* size of the constants packed for kernels */
  size_t cached_bytes;         /* size of those that came from the cache */
  size_t memory_bytes;         /* all memory of the model, also weights in mapped files */
} moka_plan_totals;
#define MOKA_PLAN_TOTALS_INIT \
  { sizeof(moka_plan_totals), 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, 0, 0, 0, 0, 0, 0, 0 }
MOKA_API moka_status moka_compute_plan_totals(const moka_compute_plan* plan, moka_plan_totals* totals);

/* Operations that a device runs as one submission. Start from MOKA_PLANNED_REGION_INIT. */
typedef struct moka_planned_region {
  size_t struct_size; /* sizeof(moka_planned_region) of the caller */
  const char* device;
  size_t operation_count, upload_bytes, download_bytes;
  double seconds; /* estimated time of its operations */
  double launch;  /* time of one submission in seconds */
  double saves;   /* seconds that one prediction saves against the host; infinite: the host cannot run them */
} moka_planned_region;
#define MOKA_PLANNED_REGION_INIT \
  { sizeof(moka_planned_region), NULL, 0, 0, 0, 0, 0, 0 }
/* In order of submission; moka_planned_operation.region is the index. */
MOKA_API size_t moka_compute_plan_region_count(const moka_compute_plan* plan);
MOKA_API moka_status moka_compute_plan_region(const moka_compute_plan* plan, size_t index, moka_planned_region* region);

/* What passes changed, as "fuse_activations" and "relu_1 into conv_1", and notes about pins, devices and caches. */
MOKA_API size_t moka_compute_plan_remark_count(const moka_compute_plan* plan);
MOKA_API moka_status moka_compute_plan_remark(const moka_compute_plan* plan, size_t index, const char** pass,
                                              const char** text);

/* The values that a plan is made of, in this order: concrete types and constants; what each device offers for each
 * operation, and the choice between them; steps; their memory. */
typedef enum moka_plan_stage MOKA_INT {
  MOKA_PLAN_RESOLVE = 0,
  MOKA_PLAN_CLAIM = 1,
  MOKA_PLAN_ARRANGE = 2,
  MOKA_PLAN_MEMORY = 3
} moka_plan_stage;
/* The text of one stage of the plan for these inputs (NULL: the default shapes), for people and tests. `text` is valid
 * until the thread's next call of this function. */
MOKA_API moka_status moka_model_plan_text(const moka_model* model, const moka_features* inputs, moka_plan_stage stage,
                                          const char** text);

#ifdef __cplusplus
}
#endif

#endif
