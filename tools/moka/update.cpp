// SPDX-License-Identifier: Apache-2.0
#include "moka/update.h"

#include <fmt/format.h>
#include <signal.h>

#include <cmath>
#include <exception>
#include <memory>

#include "clock.h"
#include "command.h"
#include "draw/losses.h"
#include "io/table.h"
#include "json.h"
#include "print.h"
#include "text.h"
#include "update_data.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

struct UpdateCommandOptions {
  std::string model, data, out, plot;
  InputOptions input;
  int64_t epochs = 0, mini_batch = 0, seed = -1;  ///< 0, -1: not given
  double learning_rate = NAN;                     ///< NaN: not given
  std::vector<std::string> parameters;
  int threads = 0;
  bool json = false;
};

std::variant<int64_t, double, bool> parameter_value(const std::string& argument, std::string_view text) {
  if (text == "yes" || text == "true") return true;
  if (text == "no" || text == "false") return false;
  if (const auto whole = parse_integer(text)) return *whole;
  if (const auto number = parse_number(text)) return *number;
  throw UsageError(fmt::format("--parameter {}: expected a number, yes or no, got '{}'", argument, text));
}

UpdateParameters parameters_of(const UpdateCommandOptions& options) {
  UpdateParameters out;
  const auto set = [&](const std::string& name, std::variant<int64_t, double, bool> value) {
    if (!out.emplace(name, value).second) throw UsageError(fmt::format("the parameter '{}' is given twice", name));
  };
  if (options.epochs > 0) set("epochs", options.epochs);
  if (options.mini_batch > 0) set("miniBatchSize", options.mini_batch);
  if (options.seed >= 0) set("seed", options.seed);
  if (!std::isnan(options.learning_rate)) set("learningRate", options.learning_rate);
  for (const std::string& argument : options.parameters) {
    const size_t equals = argument.find('=');
    if (equals == std::string::npos || equals == 0)
      throw UsageError(fmt::format("--parameter {}: expected NAME=VALUE", argument));
    set(argument.substr(0, equals), parameter_value(argument, std::string_view(argument).substr(equals + 1)));
  }
  return out;
}

/// Catches Ctrl-C during its lifetime.
class Interrupts {
 public:
  Interrupts() {
    caught_ = 0;
    struct sigaction action = {};
    action.sa_handler = [](int) { caught_ = 1; };
    ::sigaction(SIGINT, &action, &before_);
  }
  ~Interrupts() { ::sigaction(SIGINT, &before_, nullptr); }
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  static bool caught() { return caught_ != 0; }

 private:
  static inline volatile sig_atomic_t caught_ = 0;
  struct sigaction before_ = {};
};

struct EpochFacts {
  double loss = 0, rate = NAN, seconds = 0;
  int64_t mini_batches = 0;
};

double number_of(const UpdateParameters& parameters, std::string_view name, double otherwise) {
  const auto it = parameters.find(name);
  return it == parameters.end() ? otherwise : std::visit([](auto v) { return static_cast<double>(v); }, it->second);
}

/// What a training was, and its line on standard error.
class History {
 public:
  explicit History(size_t examples) : examples_(static_cast<double>(examples)) {}

  void add(const UpdateContext& context) {
    const UpdateMetrics& m = context.metrics;
    const double all = number_of(context.parameters, "epochs", 1);
    if (context.event == UpdateEvent::training_begin) {
      const double batch = number_of(context.parameters, "miniBatchSize", examples_);
      progress_ = std::make_unique<io::Progress>("training", static_cast<size_t>(all * std::ceil(examples_ / batch)));
      return;
    }
    if (context.event == UpdateEvent::mini_batch_end) {
      const double part =
          static_cast<double>(m.mini_batch + 1) / static_cast<double>(std::max<int64_t>(m.mini_batches, 1));
      const double done = static_cast<double>(m.epoch) + part, seconds = seconds_since(start_);
      curve.mini_batches.emplace_back(done, m.loss);
      progress_->relabel(fmt::format("epoch {} of {}  loss {}  {} examples/s", m.epoch + 1, all, format_number(m.loss),
                                     format_number(std::round(done * examples_ / seconds))));
      progress_->advance();
      return;
    }
    curve.epochs.emplace_back(static_cast<double>(m.epoch + 1), m.loss);
    const double now = seconds_since(start_);
    epochs.push_back({m.loss, number_of(context.parameters, "learningRate", NAN), now - before_, m.mini_batches});
    before_ = now;
  }
  void end() {
    seconds = seconds_since(start_);
    progress_.reset();
  }

  LearningCurve curve;
  std::vector<EpochFacts> epochs;
  double seconds = 0;

 private:
  double examples_;
  Clock::time_point start_ = Clock::now();
  double before_ = 0;
  std::unique_ptr<io::Progress> progress_;
};

/// An error that counts examples from 0, with the places of the examples instead.
std::string with_places(std::string_view text, const UpdateData& data) {
  const std::string_view word = "example ", digits = "0123456789";
  if (!text.starts_with(word)) return std::string(text);
  std::string out;
  for (size_t at = text.find(word); at != text.npos; at = text.find(word)) {
    const size_t begin = at + word.size(), end = std::min(text.find_first_not_of(digits, begin), text.size());
    const auto number = parse_integer(text.substr(begin, end - begin));
    const bool is_known = number && *number >= 0 && static_cast<size_t>(*number) < data.count();
    out += text.substr(0, is_known ? at : begin);
    if (is_known) out += data.place(static_cast<size_t>(*number));
    text.remove_prefix(is_known ? end : begin);
  }
  return out.append(text);
}

/// Trains until the end or Ctrl-C.
UpdateContext train(const UpdateCommandOptions& options, const UpdateData& data, History& history) {
  UpdateTask* running = nullptr;
  const auto stop_if_asked = [&running] {
    if (Interrupts::caught()) running->cancel();
  };
  UpdateOptions how;
  how.parameters = parameters_of(options);
  how.configuration.threads = options.threads;
  how.progress = [&](const UpdateContext& context) {
    history.add(context);
    stop_if_asked();
  };
  UpdateExamples examples(data.count(), [&](size_t i) {
    stop_if_asked();
    return data.read(i);
  });
  examples.known = [&](size_t i) {
    stop_if_asked();
    return data.known(i);
  };
  UpdateTask task(options.model, std::move(examples), std::move(how));
  running = &task;
  const Interrupts interrupts;
  try {
    UpdateContext context = task.run();
    history.end();
    return context;
  } catch (const Exception& e) {
    history.end();
    throw Exception(e.kind(), with_places(e.what(), data));
  }
}

Json value_json_of(const std::variant<int64_t, double, bool>& value) {
  return std::visit([](auto v) { return Json(v); }, value);
}

Json json_of(const UpdateCommandOptions& options, const UpdateData& data, const UpdateContext& context,
             const History& history) {
  Json out{{"model", options.model}, {"data", options.data}, {"examples", data.count()}};
  Json parameters = Json::object(), epochs = Json::array(), losses = Json::array();
  for (const auto& [name, value] : context.parameters) parameters[name] = value_json_of(value);
  for (const EpochFacts& e : history.epochs) {
    epochs.push_back(Json{{"loss", e.loss}, {"miniBatches", e.mini_batches}, {"seconds", e.seconds}});
    if (!std::isnan(e.rate)) epochs.back()["learningRate"] = e.rate;
  }
  for (const auto& [x, loss] : history.curve.mini_batches) losses.push_back(loss);
  out["parameters"] = parameters;
  if (!losses.empty()) out["epochs"] = epochs;
  if (!losses.empty()) out["losses"] = losses;
  out["seconds"] = history.seconds;
  out["written"] = options.out;
  if (!options.plot.empty()) out["plot"] = options.plot;
  return out;
}

/// At most 20 epochs, among them the first and the last.
std::string epochs_text(const History& history, size_t examples) {
  constexpr size_t most = 20;
  io::Table table({{"epoch", io::Align::right},
                   {"loss", io::Align::right},
                   {"learning rate", io::Align::right},
                   {"mini-batches", io::Align::right},
                   {"time", io::Align::right},
                   {"examples/s", io::Align::right}});
  const size_t count = history.epochs.size(), shown = std::min(count, most);
  for (size_t i = 0; i < shown; i++) {
    const size_t n = shown == 1 ? 0 : i * (count - 1) / (shown - 1);
    const EpochFacts& e = history.epochs[n];
    table.add_row({std::to_string(n + 1), fmt::format("{:.4f}", e.loss),
                   std::isnan(e.rate) ? "" : format_number(e.rate), std::to_string(e.mini_batches),
                   format_seconds(e.seconds),
                   format_count(std::lround(static_cast<double>(examples) / std::max(e.seconds, 1e-9)))});
  }
  return table_text(table);
}

std::string shown_update(const UpdateCommandOptions& options, const UpdateData& data, const UpdateContext& context,
                         const UpdateDescription& description, const History& history) {
  std::string out, parameters;
  if (!history.curve.mini_batches.empty()) {
    out = epochs_text(history, data.count()) + "\n" + curve_text(history.curve) + "\n";
  }
  for (const auto& [name, value] : context.parameters) {
    const auto* flag = std::get_if<bool>(&value);
    parameters +=
        fmt::format("{}{} {}", parameters.empty() ? "" : ", ", name,
                    flag != nullptr ? (*flag ? "yes" : "no") : format_number(number_of(context.parameters, name, 0)));
  }
  out += fact("examples", fmt::format("{} from {}", format_count(static_cast<int64_t>(data.count())), options.data));
  std::string layers;
  for (const UpdatableLayer& layer : description.layers) layers += (layers.empty() ? "" : ", ") + layer.name;
  if (!layers.empty()) out += fact("updated", layers);
  if (description.neighbors)
    out +=
        fact("samples", fmt::format("{}, {} before",
                                    format_count(description.neighbors->samples + static_cast<int64_t>(data.count())),
                                    format_count(description.neighbors->samples)));
  if (!parameters.empty()) out += fact("parameters", parameters);
  out += fact("time", format_seconds(history.seconds));
  out += fact("written", options.out);
  if (!options.plot.empty()) out += fact("plot", options.plot);
  return out;
}

/// Throws what the model says against an update.
ModelDescription description_of(const UpdateCommandOptions& options) {
  ModelDescription described = Model::describe(options.model);
  if (!described.update || !described.update->fault.empty()) UpdateTask(options.model, UpdateExamples(), {});
  return described;
}

int run_update(const UpdateCommandOptions& options, const Outputs& outputs) {
  const auto ends_with = [](const std::string& path, std::string_view ending) {
    return has_extension(without_trailing_slashes(path), ending);
  };
  if (!ends_with(options.out, ".mlmodel") && !ends_with(options.out, ".mlpackage") &&
      !ends_with(options.out, ".mlmodelc"))
    throw UsageError(
        fmt::format("--out: expected a name that ends with .mlmodel, .mlpackage or .mlmodelc, got '{}'", options.out));
  if (!options.plot.empty() && !ends_with(options.plot, ".png"))
    throw UsageError(fmt::format("--plot: expected a name that ends with .png, got '{}'", options.plot));
  parameters_of(options);
  const ModelDescription described = description_of(options);
  if (!options.plot.empty() && described.update->neighbors)
    throw UsageError("--plot: a nearest-neighbors classifier keeps its examples and has no losses to draw");
  const UpdateData data(described, options.data, options.input);
  for (const std::string& text : data.notes()) note("update", text);
  History history(data.count());
  const UpdateContext context = train(options, data, history);
  if (context.is_cancelled) {
    const std::string done = history.curve.mini_batches.empty()
                                 ? "before the first mini-batch"
                                 : fmt::format("in epoch {} after mini-batch {} of {}", context.metrics.epoch + 1,
                                               context.metrics.mini_batch + 1, context.metrics.mini_batches);
    note("update", fmt::format("interrupted {}; nothing was written", done));
    return kInterrupted;
  }
  context.save(options.out, outputs.overwrite());
  UpdateCommandOptions done = options;
  std::exception_ptr failed;  // the model is written, and what it learned is worth showing
  try {
    if (!options.plot.empty())
      outputs.write(options.plot, FileKind::picture, encode_png(draw_plot(plot_of(history.curve))));
  } catch (const std::exception&) {
    failed = std::current_exception();
    done.plot.clear();
  }
  print(options.json ? rendered(json_of(done, data, context, history))
                     : shown_update(done, data, context, *described.update, history));
  if (failed) std::rethrow_exception(failed);
  return kFine;
}

}  // namespace

Command add_update(Arguments parent) {
  auto options = std::make_shared<UpdateCommandOptions>();
  Arguments app = parent.add_subcommand("update", "Train an updatable model on your examples, and save the result");
  app.add_option("MODEL", options->model, "An .mlmodel file, an .mlpackage or an .mlmodelc folder")
      .required()
      .option_text(" ");
  app.add_option(
         "--data", options->data,
         "The examples: a folder with a folder of pictures for each label, or with labels.csv (columns file and\n"
         "label); a table (.csv), objects (.jsonl, .json) or arrays (.npz) with the model's training inputs")
      .required()
      .option_text("DIR|FILE");
  const auto outputs = Outputs::of(app);
  outputs
      ->add_option("-o,--out", options->out,
                   {kSpecificationName, kPackageName, {".mlmodelc", FileKind::compiled_model}},
                   "The .mlmodel, .mlpackage or .mlmodelc to write; MODEL itself with --force")
      .required()
      .option_text("OUT");
  app.add_option("--epochs", options->epochs, "How often every example is seen (default: the model's)")
      .check(whole_number(1, INT64_MAX))
      .option_text("N");
  app.add_option("--learning-rate", options->learning_rate, "The size of a step (default: the model's)")
      .check(number(0, 1e300))
      .option_text("X");
  app.add_option("--mini-batch", options->mini_batch, "Examples of a step (default: the model's)")
      .check(whole_number(1, INT64_MAX))
      .option_text("N");
  app.add_option("--parameter", options->parameters,
                 "Any parameter by Core ML's key: momentum=0.9, shuffle=no, beta1=0.8, numberOfNeighbors=3")
      .allow_extra_args(false)
      .option_text("NAME=VALUE");
  app.add_option("--seed", options->seed, "Seed of the order of the examples (default: the model's, else 0)")
      .check(whole_number(0, INT64_MAX))
      .option_text("N");
  app.add_option("--threads", options->threads, "Threads of the training (default: one for each core)")
      .check(whole_number(1, 1024))
      .option_text("N");
  app.add_option("--fit", options->input.fit,
                 "How pictures fill an image input: scaleFill (default), scaleFit or centerCrop")
      .check(one_of({"scaleFill", "scaleFit", "centerCrop"}))
      .option_text("HOW");
  app.add_option("--rate", options->input.rate, "Resample sound to this sample rate first")
      .check(whole_number(1, 10'000'000))
      .option_text("HZ");
  app.add_flag("--pad", options->input.pad, "Make sound as long as the model wants: add silence, or cut the end off");
  outputs->add_option("--plot", options->plot, {{".png", FileKind::picture}}, "Draw the losses as a PNG")
      .option_text("FILE");
  app.add_flag("--json", options->json, "Answer in JSON");
  app.footer(
      "Ctrl-C ends the training before its next step, and nothing is written.\n"
      "Example: moka update Drawings.mlmodel --data drawings --epochs 20 -o MyDrawings.mlmodel");
  return {app, "moka update Drawings.mlmodel --data drawings -o MyDrawings.mlmodel",
          [options, outputs] { return run_update(*options, *outputs); }, outputs};
}

}  // namespace moka::cli
