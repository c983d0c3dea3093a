// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "concluding/tape_util.h"
#include "moka/error.h"

/// The frame around the rules: the choice of rules, rules of the user, JSON and the page.
namespace moka::test {
namespace {

Tape tape_of_loads() {
  Tape tape;
  for (int i = 0; i < 5; i++) {
    const trace::ModelId m = tape.model("<net>.mlmodel");
    tape.activity(m, "load", 1000 * i, 1000 * i + 500, {{"path", "/models/<net>.mlmodel"}});
    tape.activity(m, "predict", 1000 * i + 500, 1000 * i + 600);
    tape.data(m, "decode", "decode", 1000 * i + 600, 1000 * i + 700, "JPEG to pixels");
  }
  return tape;
}

ErrorKind kind_of_error(const Tape& tape, const std::string& rule, const std::string& own, std::string& message) {
  try {
    tape.concluded(rule, own);
  } catch (const Exception& e) {
    message = e.what();
    return e.kind();
  }
  ADD_FAILURE() << "no error for " << rule << own;
  return ErrorKind::internal;
}

TEST(TraceConclusions, RulesOfTheUserSelectAndCount) {
  const std::string rules = R"({"rules": [
    {"name": "decodes", "says": "decodes {times}, {perPrediction} a call, {share} of the time, {each} each",
     "remedy": "Decode once.", "where": {"lane": "Data", "name": "dec*", "reason": "JPEG*"}, "atLeast": {"count": 5}},
    {"name": "never", "says": "x", "where": {"lane": "Data"}, "atLeast": {"count": 6}},
    {"name": "of another model", "says": "x", "where": {"model": "other*"}}]})";
  const TraceConclusions found = tape_of_loads().concluded({}, rules);
  std::vector<std::string> texts;
  for (const TraceConclusion& c : found.conclusions)
    if (c.rule != "loaded-repeatedly") texts.push_back(cat(c.rule, ": ", c.text, " ", c.remedy));
  EXPECT_EQ(texts, Texts{"decodes: decodes 5 times, 1 a call, 11% of the time, 100 µs each Decode once."});
  EXPECT_EQ(tape_of_loads().concluded("decodes", rules).conclusions.size(), 1u);
}

TEST(TraceConclusions, MistakesInRulesAreNamed) {
  const Tape tape = tape_of_loads();
  std::string message;
  EXPECT_EQ(kind_of_error(tape, "no such rule", {}, message), ErrorKind::invalid_argument);
  EXPECT_NE(message.find("loaded-repeatedly"), std::string::npos) << message;
  for (const auto& [text, part] : std::vector<std::pair<std::string, std::string>>{
           {"[", "a list 'rules'"},
           {"{\"rules\": 3}", "a list 'rules'"},
           {std::string(100000, '['), "a list 'rules'"},
           {R"({"rules": [3]})", "rules[0]: expected an object"},
           {R"({"rules": [{"name": "a"}]})", "expected a name and what it says"},
           {R"({"rules": [{"name": "a", "says": 3}]})", "rules[0].says"},
           {R"({"rules": [{"name": "a", "says": "b", "when": {}}]})", "got 'when'"},
           {R"({"rules": [{"name": "a", "says": "b", "where": {"lanes": "x"}}]})", "got 'lanes'"},
           {R"({"rules": [{"name": "a", "says": "b", "where": []}]})", "rules[0].where: expected an object"},
           {R"({"rules": [{"name": "a", "says": "b", "atLeast": {"count": "x"}}]})", "rules[0].atLeast.count"},
           {R"({"rules": [{"name": "a", "says": "b", "atLeast": {"count": -1}}]})", "rules[0].atLeast.count"}}) {
    EXPECT_EQ(kind_of_error(tape, {}, text, message), ErrorKind::malformed);
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
}

TEST(TraceConclusions, JsonAndPageHoldTheConclusionsAndTheirEvents) {
  const Tape tape = tape_of_loads();
  const TraceConclusions found = tape.concluded();
  EXPECT_EQ(found.predictions, 5);
  EXPECT_EQ(found.models, 1);
  const auto json = nlohmann::json::parse(to_json(found));
  EXPECT_EQ(json["format"], "moka-trace-conclusions");
  EXPECT_EQ(json["conclusions"][0]["text"], "loaded 5 times for 5 predictions: keep the model");
  EXPECT_EQ(json["conclusions"][0]["events"][0]["details"]["path"], "/models/<net>.mlmodel");
  const std::string& page = tape.page();
  EXPECT_EQ(page.find("/*TRACE*/"), std::string::npos);
  const std::string start = "<script id=\"trace\" type=\"application/json\">";
  const size_t from = page.find(start) + start.size(), to = page.find("</script>", from);
  const std::string held = page.substr(from, to - from);
  EXPECT_EQ(held.find('<'), std::string::npos);
  const auto content = nlohmann::json::parse(held);
  // Every mark of a conclusion is that of one slice.
  std::set<int> marks;
  for (const auto& lane : content["lanes"])
    for (const auto& slice : lane["slices"])
      if (slice.size() > 4) {
        EXPECT_TRUE(marks.insert(slice[4].get<int>()).second);
      }
  for (const auto& mark : content["conclusions"][0]["marks"]) EXPECT_TRUE(marks.contains(mark.get<int>()));
  EXPECT_EQ(content["conclusions"][0]["marks"].size(), 5u);
  EXPECT_EQ(content["lanes"].size(), 2u);  // Activity and Data of the five loads
}

TEST(TraceConclusions, ATraceOfNothingConcludesNothing) {
  const Tape tape;
  const TraceConclusions found = tape.concluded();
  EXPECT_TRUE(found.conclusions.empty());
  EXPECT_EQ(found.seconds, 0);
  EXPECT_THROW(conclude_trace("/nonexistent/t.pftrace"), Exception);
}

}  // namespace
}  // namespace moka::test
