// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/error.h"
#include "compiler/generate/generate.h"
#include "compiler/generate/reserved.h"
#include "compiler/generate/source.h"

namespace moka::compiler {
namespace {

using import::FeatureKind;

constexpr PixelFormats c_formats{"MOKA_RGBA8", "MOKA_GRAY8", "MOKA_GRAY_FLOAT32"};

bool is_number(const Field& f) {
  return f.feature.kind == FeatureKind::int64 || f.feature.kind == FeatureKind::float64;
}

std::string c_type(const Field& f) {
  switch (f.feature.kind) {
    case FeatureKind::int64: return "int64_t ";
    case FeatureKind::float64: return "double ";
    case FeatureKind::string: return "const char* ";
    case FeatureKind::image: return "moka_image ";
    case FeatureKind::dictionary: return "moka_dictionary ";
    case FeatureKind::sequence: return "moka_sequence ";
    case FeatureKind::multi_array:
    case FeatureKind::state: break;
  }
  return "moka_array ";
}

/// The suffix of moka.h's functions for this type.
std::string suffix(const Field& f) {
  switch (f.feature.kind) {
    case FeatureKind::int64: return "int64";
    case FeatureKind::float64: return "double";
    case FeatureKind::string: return "string";
    case FeatureKind::image: return "image";
    case FeatureKind::dictionary: return "dictionary";
    case FeatureKind::sequence: return "sequence";
    case FeatureKind::multi_array:
    case FeatureKind::state: break;
  }
  return "array";
}

/// The author's text for use in a C comment, which it must not end early.
std::string commented(const Field& f) {
  std::string text = documentation(f, c_formats);
  for (size_t at = text.find("*/"); at != std::string::npos; at = text.find("*/", at)) text.replace(at, 2, "* /");
  return text;
}

/// Whether an optional input has a value.
std::string has_value(const Field& f) {
  const std::string value = "input->" + f.identifier;
  if (is_number(f)) return "input->has_" + f.identifier;
  switch (f.feature.kind) {
    case FeatureKind::string: return value + " != NULL";
    case FeatureKind::image: return value + ".pixels != NULL";
    case FeatureKind::dictionary: return value + ".values != NULL";
    case FeatureKind::sequence: return cat("(", value, ".strings != NULL || ", value, ".int64s != NULL)");
    default: return value + ".data != NULL";
  }
}

}  // namespace

Sources write_c(const import::ModelDescription& description, const std::string& model_name) {
  Interface model = describe_interface(description, model_name, {false, c_reserved});
  // moka.h declares names that begin so.
  for (const std::string_view taken : {"moka", "MOKA"})
    if (model.class_name == taken || model.class_name.starts_with(cat(taken, "_"))) model.class_name += '_';
  Words w{{"class", model.class_name}, {"include", "#include"}};
  w["guard"] = "MOKA_GENERATED_" + model.class_name + "_H";
  w["inputs"] = each(model.inputs, "", [](const Field& f) {
    return cat("  ", c_type(f), f.identifier, "; /* ", commented(f), " */\n",
               f.feature.optional && is_number(f) ? cat("  int has_", f.identifier, "; /* 0: no value */\n") : "");
  });
  w["outputs"] = each(model.outputs, "", [](const Field& f) {
    return cat("  ", c_type(f), f.identifier, "; /* ", commented(f), " */\n");
  });
  // A struct needs a member.
  if (model.inputs.empty()) w["inputs"] = "  char unused;\n";
  if (model.outputs.empty()) w["outputs"] = "  char unused;\n";
  w["setting"] = each(model.inputs, "", [](const Field& f) {
    const bool by_value = is_number(f) || f.feature.kind == FeatureKind::string;
    return cat("  if (status == MOKA_OK", f.feature.optional ? " && " + has_value(f) : "",
               ")\n    status = moka_features_set_", suffix(f), "(model->inputs, ", literal(f.feature.name), ", ",
               by_value ? "" : "&", "input->", f.identifier, ");\n");
  });
  w["getting"] = each(model.outputs, "", [](const Field& f) {
    return cat("  if (status == MOKA_OK) status = moka_features_get_", suffix(f), "(model->outputs, ",
               literal(f.feature.name), ", &output->", f.identifier, ");\n");
  });
  const std::string header = fill(R"(#ifndef $guard$
#define $guard$

/* Generated from the model; edits are lost. */

$include$ <moka/moka.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A loaded model. It belongs to one thread at a time. */
typedef struct $class$ $class$;

/* Optional values that are NULL inside are absent. */
typedef struct $class$Input {
$inputs$} $class$Input;

/* Strings, arrays and images live until the next prediction that succeeds, whose inputs they may be, or until
 * $class$_free. */
typedef struct $class$Output {
$outputs$} $class$Output;

/* `configuration` may be NULL. */
moka_status $class$_load(const char* path, const moka_configuration* configuration, $class$** model);
void $class$_free($class$* model);
const moka_model* $class$_model(const $class$* model);

/* `state`: of moka_state_new for a model that keeps states, else NULL. */
moka_status $class$_predict($class$* model, const $class$Input* input, moka_state* state, $class$Output* output);

#ifdef __cplusplus
}
#endif

#endif
)",
                                  w);
  const std::string source = fill(R"(/* Generated from the model; edits are lost. */

$include$ "$class$.h"

#include <stdlib.h>

struct $class$ {
  moka_model* model;
  moka_features *inputs, *outputs, *next;
};

moka_status $class$_load(const char* path, const moka_configuration* configuration, $class$** model) {
  moka_status status;
  $class$* made;
  if (model == NULL) return MOKA_INVALID_ARGUMENT;
  made = calloc(1, sizeof *made);
  if (made == NULL) return MOKA_OUT_OF_BUDGET;
  status = moka_model_load(path, configuration, &made->model);
  if (status == MOKA_OK) status = moka_features_new(&made->inputs);
  if (status == MOKA_OK) status = moka_features_new(&made->outputs);
  if (status == MOKA_OK) status = moka_features_new(&made->next);
  if (status != MOKA_OK) {
    $class$_free(made);
    return status;
  }
  *model = made;
  return MOKA_OK;
}

void $class$_free($class$* model) {
  if (model == NULL) return;
  moka_features_free(model->inputs);
  moka_features_free(model->outputs);
  moka_features_free(model->next);
  moka_model_free(model->model);
  free(model);
}

const moka_model* $class$_model(const $class$* model) { return model == NULL ? NULL : model->model; }

moka_status $class$_predict($class$* model, const $class$Input* input, moka_state* state, $class$Output* output) {
  moka_status status = MOKA_OK;
  moka_features* earlier;
  if (model == NULL || input == NULL || output == NULL) return MOKA_INVALID_ARGUMENT;
$setting$  if (status == MOKA_OK) status = moka_model_predict(model->model, model->inputs, model->next, state);
  moka_features_clear(model->inputs);
  /* The inputs may be the earlier outputs, which go only now. */
  if (status == MOKA_OK) {
    earlier = model->outputs;
    model->outputs = model->next;
    model->next = earlier;
  }
  moka_features_clear(model->next);
$getting$  return status;
}
)",
                                  w);
  return {{model.class_name + ".h", header}, {model.class_name + ".c", source}};
}

}  // namespace moka::compiler
