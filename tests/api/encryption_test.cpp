// SPDX-License-Identifier: Apache-2.0
#include "moka/encryption.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "api/api_util.h"
#include "moka/build.h"
#include "moka/compiler.h"
#include "moka/inspection.h"
#include "temporary_folder.h"

namespace moka::test {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) out.push_back(entry.path());
  return out;
}

/// A package with a weight file, encrypted for a recipient.
class Encryption : public ::testing::Test {
 protected:
  Encryption() {
    for (const char* name : {"MOKA_IDENTITY", "MOKA_PASSPHRASE", "MOKA_PASSPHRASE_FILE"}) unsetenv(name);
    fs::copy(fs::path(MOKA_GOLDEN) / "cached" / "model.mlpackage", package_, fs::copy_options::recursive);
    EncryptionOptions options;
    options.recipients = {pair_.recipient};
    encrypt_model(package_.string(), file_, options);
  }
  ~Encryption() override {
    for (const char* name : {"MOKA_IDENTITY", "MOKA_PASSPHRASE", "MOKA_PASSPHRASE_FILE", "MOKA_CACHE"}) unsetenv(name);
    set_key_source(nullptr);
  }
  ModelConfiguration with_key() const {
    ModelConfiguration c;
    c.key = [this](const KeyRequest& request) { return request.passphrase ? std::string() : pair_.identity; };
    return c;
  }
  template <class Act>
  static std::string failure(ErrorKind kind, const Act& act) {
    try {
      act();
    } catch (const Exception& e) {
      EXPECT_EQ(e.kind(), kind) << e.what();
      return e.what();
    }
    ADD_FAILURE() << "no error";
    return {};
  }

  TemporaryFolder folder_;
  const fs::path package_ = folder_ / "model.mlpackage";
  const std::string file_ = folder_ / "model.mlpackage.age";
  const KeyPair pair_ = generate_key_pair();
};

TEST_F(Encryption, PredictsAsThePlainModel) {
  const Model plain = Model::load(package_), opened = Model::load(file_, with_key());
  expect_same_bits(plain, opened);
  EXPECT_EQ(plain.description().author, opened.description().author);
  EXPECT_EQ(plain.structure().weights.size(), opened.structure().weights.size());
}

TEST_F(Encryption, KeysComeFromTheEnvironmentAFileOrTheApplication) {
  failure(ErrorKind::invalid_argument, [&] { Model::load(file_); });
  setenv("MOKA_IDENTITY", pair_.identity.c_str(), 1);
  Model::load(file_);
  std::ofstream(folder_ / "secret.key") << "# comment\n" << pair_.identity << "\n";
  setenv("MOKA_IDENTITY", (folder_ / "secret.key").c_str(), 1);
  Model::load(file_);
  EXPECT_EQ(Inspection::open(file_).outline().structure.weights.size(), Model::load(file_).structure().weights.size());
  setenv("MOKA_IDENTITY", (folder_ / "none").c_str(), 1);
  failure(ErrorKind::not_found, [&] { Model::load(file_); });
  std::string asked;
  set_key_source([&](const KeyRequest& request) {
    asked = request.model;
    return pair_.identity;
  });
  Model::load(file_);
  EXPECT_EQ(asked, file_);
}

TEST_F(Encryption, WrongKeysAreErrors) {
  ModelConfiguration c;
  c.key = [](const KeyRequest&) { return generate_key_pair().identity; };
  const std::string text = failure(ErrorKind::invalid_argument, [&] { Model::load(file_, c); });
  EXPECT_NE(text.find("another identity"), std::string::npos) << text;
  c.key = [](const KeyRequest&) -> std::string { throw Exception(ErrorKind::data, "the key server is down"); };
  EXPECT_EQ(failure(ErrorKind::data, [&] { Model::load(file_, c); }), "the key server is down");
}

TEST_F(Encryption, PassphraseOpens) {
  EncryptionOptions options;
  options.passphrase = "correct horse";
  options.work_factor = 8;
  const std::string file = folder_ / "locked.age";
  encrypt_model(package_.string(), file, options);
  failure(ErrorKind::invalid_argument, [&] { Model::load(file); });
  setenv("MOKA_PASSPHRASE", "wrong", 1);
  failure(ErrorKind::invalid_argument, [&] { Model::load(file); });
  setenv("MOKA_PASSPHRASE", "correct horse", 1);
  expect_same_bits(Model::load(package_), Model::load(file));
  unsetenv("MOKA_PASSPHRASE");
  std::ofstream(folder_ / "pass") << "correct horse\nsecond line\n";
  setenv("MOKA_PASSPHRASE_FILE", (folder_ / "pass").c_str(), 1);
  Model::load(file);
}

TEST_F(Encryption, AlteredOrCutModelsNeverPredict) {
  const std::string whole = text_of(file_);
  const std::string bad = folder_ / "bad.age";
  for (size_t at = 0; at < whole.size(); at += whole.size() / 60 + 1) {
    std::string altered = whole;
    altered[at] = static_cast<char>(altered[at] ^ 4);
    std::ofstream(bad, std::ios::binary) << altered;
    EXPECT_THROW(Model::load(bad, with_key()), Exception) << "byte " << at;
    std::ofstream(bad, std::ios::binary) << whole.substr(0, at);
    EXPECT_THROW(Model::load(bad, with_key()), Exception) << "cut at " << at;
  }
}

TEST_F(Encryption, PackedWeightsStayOutOfTheCache) {
  const fs::path cache = folder_ / "cache";
  ModelConfiguration c = with_key();
  c.cache = cache;
  setenv("MOKA_CACHE", cache.c_str(), 1);
  const Model model = Model::load(file_, c);
  model.predict(random_inputs(model.function(), 1));
  EXPECT_EQ(model.cache_file(), "");
  const Model again = model.configured(c);
  again.predict(random_inputs(again.function(), 1));
  EXPECT_TRUE(!fs::exists(cache) || files_below(cache).empty());
  Model::load(package_, c);
  EXPECT_FALSE(files_below(cache).empty());
}

TEST_F(Encryption, NothingPlainIsWritten) {
  for (const auto& act : std::vector<std::function<void()>>{[&] { compile_model(file_, folder_ / "out.mlmodelc"); },
                                                            [&] { ModelSource::open(file_); }}) {
    set_key_source([&](const KeyRequest&) { return pair_.identity; });
    const std::string text = failure(ErrorKind::invalid_argument, act);
    EXPECT_NE(text.find("moka decrypt"), std::string::npos) << text;
  }
  // No file of the temporary folder but the package itself holds the first bytes of the weights.
  std::string weights;
  for (const fs::path& path : files_below(package_))
    if (path.filename() == "weight.bin") weights = text_of(path).substr(128, 64);
  ASSERT_EQ(weights.size(), 64u);
  for (const fs::path& path : files_below(folder_.path())) {
    if (path.string().find("model.mlpackage/") != std::string::npos) continue;
    EXPECT_EQ(text_of(path).find(weights), std::string::npos) << path;
  }
}

TEST_F(Encryption, DecryptsToTheSameFiles) {
  decrypt_model(file_, folder_ / "back.mlpackage", with_key().key);
  const auto original = files_below(package_);
  EXPECT_EQ(files_below(folder_ / "back.mlpackage").size(), original.size());
  for (const fs::path& path : original)
    EXPECT_TRUE(text_of(path) == text_of(folder_ / "back.mlpackage" / path.lexically_relative(package_))) << path;
  decrypt_model(file_, folder_ / "back.mlpackage", with_key().key);
  EXPECT_EQ(files_below(folder_ / "back.mlpackage").size(), original.size());
  fs::create_directories(folder_ / "letters/old");
  for (const Overwrite overwrite : {Overwrite::own_kind, Overwrite::any})
    failure(ErrorKind::invalid_argument, [&] { decrypt_model(file_, folder_ / "letters", with_key().key, overwrite); });
  EXPECT_TRUE(fs::exists(folder_ / "letters/old"));
  failure(ErrorKind::invalid_argument, [&] {
    EncryptionOptions options;
    options.recipients = {pair_.recipient};
    encrypt_model(file_, folder_ / "twice.age", options);
  });
  EXPECT_FALSE(fs::exists(folder_ / "twice.age"));
}

TEST_F(Encryption, LoadsFromMemoryAndFromTheApplicationsReader) {
  const std::string whole = text_of(file_);
  const Model plain = Model::load(package_);
  const ModelAssetView view{std::as_bytes(std::span(whole)), {}, nullptr};
  expect_same_bits(plain, Model::load(view, with_key()));
  // A scheme of the application's own: every byte is inverted.
  setenv("MOKA_IDENTITY", pair_.identity.c_str(), 1);
  decrypt_model(file_, folder_ / "plain.mlpackage");
  ASSERT_EQ(std::system(("cd " + folder_.path().string() + " && tar cf plain.tar plain.mlpackage").c_str()), 0);
  std::string inverted = text_of(folder_ / "plain.tar");
  for (char& byte : inverted) byte = static_cast<char>(~byte);
  ModelReader reader{inverted.size(), [&](uint64_t offset, std::span<std::byte> to) {
                       for (size_t i = 0; i < to.size(); ++i) to[i] = ~static_cast<std::byte>(inverted[offset + i]);
                     }};
  expect_same_bits(plain, Model::load(reader));
  reader.read = [](uint64_t, std::span<std::byte>) { throw Exception(ErrorKind::io, "the card was pulled"); };
  EXPECT_EQ(failure(ErrorKind::io, [&] { Model::load(reader); }), "the card was pulled");
}

TEST_F(Encryption, SingleFilesAndCompiledModelsWork) {
  compile_model(package_, folder_ / "model.mlmodelc");
  EncryptionOptions options;
  options.recipients = {pair_.recipient};
  encrypt_model(folder_ / "model.mlmodelc/", folder_ / "compiled.age", options);
  expect_same_bits(Model::load(package_), Model::load(folder_ / "compiled.age", with_key()));
  for (const auto& entry : fs::recursive_directory_iterator(MOKA_GOLDEN)) {
    if (entry.path().extension() != ".mlmodel") continue;
    encrypt_model(entry.path(), folder_ / "single.age", options);
    EXPECT_EQ(Model::load(folder_ / "single.age", with_key()).mil(), Model::load(entry.path()).mil());
    decrypt_model(folder_ / "single.age", folder_ / "single.mlmodel", with_key().key);
    EXPECT_TRUE(text_of(folder_ / "single.mlmodel") == text_of(entry.path()));
    break;
  }
}

TEST_F(Encryption, ModelsThatAppleEncryptedAreRefusedByName) {
  compile_model(package_, folder_ / "apple.mlmodelc");
  fs::create_directories(folder_ / "apple.mlmodelc/encryptionInfo");
  std::ofstream(folder_ / "apple.mlmodelc/encryptionInfo/coremldata.bin") << "wrapped";
  std::string text = failure(ErrorKind::unsupported, [&] { Model::load(folder_ / "apple.mlmodelc"); });
  EXPECT_NE(text.find("encryptionInfo"), std::string::npos) << text;
  std::ofstream(folder_ / "team.mlmodelkey") << "key";
  text = failure(ErrorKind::unsupported, [&] { Model::load(folder_ / "team.mlmodelkey"); });
  EXPECT_NE(text.find("Apple"), std::string::npos) << text;
  failure(ErrorKind::unsupported, [&] { read_identity_file(folder_ / "team.mlmodelkey"); });
}

}  // namespace
}  // namespace moka::test
