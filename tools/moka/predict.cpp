// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <optional>

#include "answers.h"
#include "arguments.h"
#include "clock.h"
#include "command.h"
#include "draw/answer.h"
#include "io/table.h"
#include "json.h"
#include "options.h"
#include "print.h"
#include "rows.h"
#include "states.h"
#include "terminal_picture.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

struct PredictOptions {
  LoadOptions load;
  InputOptions input;
  std::string folder, drawing;
  int64_t repeat = 1;
  bool state = false, json = false;
  std::string load_state, save_state;  ///< folders
};

/// The times of all repetitions of all rows, and the outputs of the last repetition.
struct Run {
  std::vector<Features> outputs;
  double seconds = 0;
  int64_t predictions = 0;
  std::vector<std::string> states;  ///< files of the saved states
};

Run predict_all(const Model& model, const PredictOptions& options, const Inputs& inputs, const Outputs& outputs) {
  Run run;
  const bool stateful = !model.function().states.empty();
  const bool keeps = options.state || !options.load_state.empty() || !options.save_state.empty();
  const char* option = options.state ? "--state" : !options.load_state.empty() ? "--load-state" : "--save-state";
  if (keeps && !stateful) throw UsageError(fmt::format("{}: the model has no states", option));
  std::optional<State> state;
  if (stateful) state = model.new_state();
  if (!options.load_state.empty()) read_states(*state, options.load_state);
  io::Progress progress("predicting", static_cast<size_t>(options.repeat) * inputs.rows.size());
  for (int64_t i = 0; i < options.repeat; ++i) {
    run.outputs.clear();
    if (!stateful) {
      const auto start = Clock::now();
      run.outputs = predict_rows(model, inputs.rows, [&](size_t rows) { progress.advance(rows); });
      run.seconds += seconds_since(start);
      run.predictions += static_cast<int64_t>(inputs.rows.size());
      continue;
    }
    for (const Features& row : inputs.rows) {
      if (!keeps && run.predictions) state = model.new_state();
      PredictionOptions prediction;
      prediction.state = &*state;
      const auto start = Clock::now();
      run.outputs.push_back(model.predict(row, prediction));
      run.seconds += seconds_since(start);
      ++run.predictions;
      progress.advance();
    }
  }
  if (!options.save_state.empty()) run.states = write_states(*state, options.save_state, outputs);
  return run;
}

/// How the pictures of --draw terminal are printed; none where files are written. Throws UsageError for a terminal that
/// shows no pictures.
PictureProtocol protocol_of(const PredictOptions& options) {
  if (options.drawing != "terminal") return PictureProtocol::none;
  if (options.json) throw UsageError("--draw terminal: expected no --json, which is for programs");
  const PictureProtocol protocol = isatty(STDOUT_FILENO)
                                       ? picture_protocol([](const char* name) { return std::getenv(name); })
                                       : PictureProtocol::none;
  if (protocol == PictureProtocol::none)
    throw UsageError(
        "--draw terminal: expected a terminal that shows pictures as kitty, Ghostty, iTerm2 or WezTerm does, outside "
        "tmux and screen; --draw FILE writes them");
  return protocol;
}

int predict(const PredictOptions& options, const Outputs& outputs) {
  const PictureProtocol protocol = protocol_of(options);
  if (!options.drawing.empty() && protocol == PictureProtocol::none) outputs.check(options.drawing, FileKind::picture);
  const Model model = load(options.load, configuration(options.load));
  const Inputs inputs = read_inputs(model, options.input);
  for (const std::string& text : inputs.notes) note("predict", text);
  const Run run = predict_all(model, options, inputs, outputs);
  std::vector<std::string> files;
  if (!options.folder.empty()) files = write_outputs(run.outputs, inputs.batch, options.folder, outputs);
  const auto written = static_cast<int64_t>(files.size());
  if (!options.drawing.empty()) {
    const std::vector<NumberedDrawing> drawings = drawings_of(model, options.input, inputs, run.outputs);
    if (protocol != PictureProtocol::none) {
      for (const NumberedDrawing& d : drawings) print(terminal_picture(d.drawing.image, protocol));
    } else {
      const std::vector<std::string> drawn = write_drawings(options.drawing, drawings, outputs);
      for (size_t i = 0; i < drawn.size(); ++i)
        note("predict", fmt::format("drew {} into {}", drawings[i].drawing.what, drawn[i]));
      files.insert(files.end(), drawn.begin(), drawn.end());
    }
  }
  if (!run.states.empty()) note("predict", fmt::format("states saved in {}", options.save_state));
  if (options.json) {
    Json json{{"model", options.load.path}, {"predictions", run.predictions}, {"seconds", run.seconds}};
    if (inputs.batch)
      for (const Features& row : run.outputs) json["batch"].push_back(to_json(row));
    else
      json["outputs"] = to_json(run.outputs[0]);
    if (!files.empty()) json["files"] = files;
    if (!run.states.empty()) json["states"] = run.states;
    print(rendered(json));
    return kFine;
  }
  const bool color = color_output();
  print(inputs.batch ? shown_batch(run.outputs, model.function(), color, line_width())
                     : shown(run.outputs[0], model.function(), color, line_width()));
  std::string times = fmt::format("{} in {}", plural(run.predictions, "prediction"), format_seconds(run.seconds));
  if (run.predictions > 1)
    times += fmt::format(", {} each", format_seconds(run.seconds / static_cast<double>(run.predictions)));
  print("\n" + dim(times) + "\n");
  // Notes name the drawings.
  if (written > 0)
    print(dim(written == 1 ? "wrote " + files[0]
                           : fmt::format("wrote {} to {}", plural(written, "file"), options.folder)) +
          "\n");
  return kFine;
}

}  // namespace

Command add_predict(Arguments parent) {
  auto options = std::make_shared<PredictOptions>();
  Arguments app = parent.add_subcommand("predict", "Predict from numbers, text, pictures, sound or a table");
  add_load_options(app, options->load);
  add_input_options(app, options->input);
  const auto outputs = Outputs::of(app);
  outputs
      ->add_option("-o,--output", options->folder, {{"", FileKind::folder}},
                   "Write outputs here: arrays .npy, pictures .png, dictionaries .json")
      .option_text("DIR");
  outputs
      ->add_option(
          "--draw", options->drawing, {},
          "Draw what the outputs mean as PNG: boxes, masks, key points, maps, classes; plots of a table's rows.\n"
          "'terminal' shows it in a terminal that can (kitty, Ghostty, iTerm2, WezTerm)")
      .option_text("FILE");
  app.add_flag("--state", options->state, "Keep one state over all predictions (else each begins with a new one)");
  app.add_option("--load-state", options->load_state,
                 "Begin with the states of this folder, NAME.npy each; keeps one state")
      .option_text("DIR");
  outputs
      ->add_option("--save-state", options->save_state, {{"", FileKind::folder}},
                   "Write the states here after the last prediction; keeps one state")
      .option_text("DIR");
  app.add_option("--repeat", options->repeat, "Predict N times and show the last outputs")
      .check(whole_number(1, 1'000'000'000))
      .option_text("N");
  app.add_flag("--json", options->json, "Answer in JSON");
  app.footer(
      "Examples:\n"
      "  moka predict Classifier.mlmodel --input image=@cat.jpg --fit centerCrop\n"
      "  moka predict Sleep.mlmodel -i wake=6 -i estimatedSleep=8\n"
      "  moka predict Sleep.mlmodel --input @nights.csv -o predictions\n"
      "  moka predict Chat.mlpackage --input @steps.jsonl --state");
  return {app, "moka predict Classifier.mlmodel --input image=@cat.jpg",
          [options, outputs] { return predict(*options, *outputs); }, outputs};
}

}  // namespace moka::cli
