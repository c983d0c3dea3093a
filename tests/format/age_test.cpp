// SPDX-License-Identifier: Apache-2.0
#include "format/age/age.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "base/lazy_memory.h"
#include "base/sha256.h"
#include "format/age/armor.h"
#include "format/age/bech32.h"
#include "format/age/header.h"
#include "format/format_util.h"

namespace moka::format::age {
namespace {

namespace fs = std::filesystem;

Bytes bytes_of(std::string text) { return Bytes::from(std::move(text)); }

KeySource gives(std::string identity, std::string passphrase = {}) {
  return [=](Wanted wanted) -> Result<std::string> { return wanted == Wanted::identity ? identity : passphrase; };
}

std::string random_text(size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::string out(size, '\0');
  for (char& c : out) c = static_cast<char>(random());
  return out;
}

std::string encrypted(const std::string& plain, const Lock& lock) {
  std::string out;
  const Status status = encrypt(Rope(bytes_of(plain)), lock, [&](std::span<const std::byte> part) -> Status {
    out.append(reinterpret_cast<const char*>(part.data()), part.size());
    return {};
  });
  EXPECT_TRUE(status.ok());
  return out;
}

struct Pair {
  KeyPair text;
  Lock lock;
};
Pair new_pair() {
  Pair out{new_key_pair().value(), {}};
  out.lock.recipients = read_recipients(out.text.recipient).value();
  return out;
}

std::string hex_sha256(std::string_view text) {
  std::string out;
  char digits[3];
  for (const std::byte b : sha256(std::as_bytes(std::span(text)))) {
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(b));
    out += digits;
  }
  return out;
}

std::string from_base64(const std::string& text) {
  std::string out(text.size(), '\0');
  size_t size = 0;
  EXPECT_EQ(sodium_base642bin(reinterpret_cast<unsigned char*>(out.data()), out.size(), text.data(), text.size(),
                              nullptr, &size, nullptr, sodium_base64_VARIANT_ORIGINAL),
            0);
  out.resize(size);
  return out;
}

TEST(Age, OpensAndRefusesTheVectors) {
  std::ifstream in(fs::path(MOKA_TEST_DATA) / "../../golden/age/vectors.json");
  const auto all = nlohmann::json::parse(in);
  size_t count = 0;
  for (const auto& c : all["cases"]) {
    const std::string name = c["name"], expect = c["expect"];
    std::string file;
    for (const std::string part : c["file"]) file += from_base64(all["pool"].value(part, part));
    const auto opened = open(bytes_of(file), gives(all["identity"], c.value("passphrase", "")));
    ++count;
    if (expect == "success") {
      ASSERT_TRUE(opened.ok()) << name << ": " << opened.error().to_string();
      EXPECT_EQ(hex_sha256(opened->text()), c["sha256"]) << name;
      continue;
    }
    ASSERT_FALSE(opened.ok()) << name;
    const bool no_key = expect == "no match";
    const ErrorCode code = opened.error().code();
    EXPECT_TRUE(no_key ? code == ErrorCode::invalid_argument
                       : code == ErrorCode::malformed || code == ErrorCode::unsupported)
        << name << ": " << opened.error().to_string();
    const bool payload = opened.error().to_string().find("block") != std::string::npos ||
                         opened.error().to_string().find("after its header") != std::string::npos;
    EXPECT_EQ(payload, expect == "payload failure") << name << ": " << opened.error().to_string();
  }
  EXPECT_GE(count, 100u);
}

TEST(Age, OpensFilesOfOtherTools) {
  const fs::path folder = fs::path(MOKA_TEST_DATA) / "age";
  const std::string key = test::read_file(folder / "key.txt");
  auto opened = [&](const char* name) {
    return open(bytes_of(test::read_file(folder / name)), gives(key, "correct horse"));
  };
  EXPECT_EQ(opened("plain.age").value().text(), std::string(70000, 'm'));
  EXPECT_EQ(opened("armored.age").value().text(), "armored content");
  EXPECT_EQ(opened("rage_two.age").value().text(), "for two");
}

TEST(Age, RoundTripsEverySize) {
  const Pair pair = new_pair();
  constexpr size_t block = BlockSource::block_size;
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{4095}, block - 1, block, block + 1, 2 * block, 5 * block + 77}) {
    const std::string plain = random_text(size, 1);
    const std::string file = encrypted(plain, pair.lock);
    constexpr size_t telling = 16;
    if (size >= telling) {
      EXPECT_EQ(file.find(plain.substr(0, telling)), std::string::npos);
    }
    const auto opened = open(bytes_of(file), gives(pair.text.identity));
    ASSERT_TRUE(opened.ok()) << size << ": " << opened.error().to_string();
    EXPECT_TRUE(opened->text() == plain) << size;
  }
}

TEST(Age, DecryptsOnlyWhatIsRead) {
  if (!maps_lazily()) GTEST_SKIP() << "the system has no userfaultfd for this process";
  const Pair pair = new_pair();
  constexpr size_t block = BlockSource::block_size, blocks = 32;
  const std::string plain = random_text(blocks * block, 2);
  const Bytes opened = open(bytes_of(encrypted(plain, pair.lock)), gives(pair.text.identity)).value();
  EXPECT_EQ(computed_bytes(opened.data()), 0u);
  EXPECT_EQ(opened.text()[7 * block + 5], plain[7 * block + 5]);
  EXPECT_EQ(computed_bytes(opened.data()), block);
  read_ahead(opened.data() + block / 2, 3 * block);
  EXPECT_EQ(computed_bytes(opened.data()), 5 * block);
  drop_pages(opened.data(), opened.size());
  EXPECT_EQ(computed_bytes(opened.data()), 0u);
  EXPECT_TRUE(opened.text() == plain);
  EXPECT_EQ(computed_bytes(opened.data()), blocks * block);
}

TEST(Age, ThreadsReadTheSameBlocks) {
  const Pair pair = new_pair();
  const std::string plain = random_text(20 * BlockSource::block_size, 3);
  const Bytes opened = open(bytes_of(encrypted(plain, pair.lock)), gives(pair.text.identity)).value();
  std::vector<std::thread> threads;
  std::atomic<int> equal{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < 5; ++round) {
        if (t == 0) drop_pages(opened.data(), opened.size());
        equal += opened.text() == plain;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(equal, 20);
}

TEST(Age, Base64IsAscii) {
  EXPECT_EQ(read_base64("/+8").value().size(), 2u);
  for (int byte = 128; byte < 256; ++byte) {
    const std::string text = {static_cast<char>(byte), '+', '8'};
    EXPECT_FALSE(read_base64(text).ok()) << byte;
    EXPECT_FALSE(read_base64(text + "=", Padding::yes).ok()) << byte;
  }
}

TEST(Age, EveryAlteredByteAndEveryCutIsAnError) {
  const Pair pair = new_pair();
  const std::string file = encrypted(random_text(300, 4), pair.lock);
  for (size_t at = 0; at < file.size(); ++at)
    for (const int bit : {0, 3, 7}) {
      std::string bad = file;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      EXPECT_FALSE(open(bytes_of(bad), gives(pair.text.identity)).ok()) << "byte " << at << ", bit " << bit;
    }
  for (size_t size = 0; size < file.size(); ++size)
    EXPECT_FALSE(open(bytes_of(file.substr(0, size)), gives(pair.text.identity)).ok()) << size;
  const std::string large = encrypted(random_text(3 * BlockSource::block_size + 10, 5), pair.lock);
  for (size_t at = 0; at < large.size(); at += 997) {
    std::string bad = large;
    bad[at] = static_cast<char>(bad[at] ^ 16);
    EXPECT_FALSE(open(bytes_of(bad), gives(pair.text.identity)).ok()) << "byte " << at;
    EXPECT_FALSE(open(bytes_of(large.substr(0, at)), gives(pair.text.identity)).ok()) << "cut at " << at;
  }
}

TEST(Age, OneOfSeveralRecipientsOpens) {
  const Pair a = new_pair(), b = new_pair(), c = new_pair();
  Lock both = a.lock;
  both.recipients.push_back(b.lock.recipients[0]);
  const Bytes file = bytes_of(encrypted("x", both));
  EXPECT_TRUE(open(file, gives(a.text.identity)).ok());
  EXPECT_TRUE(open(file, gives("# comment\n\n" + c.text.identity + "\r\n" + b.text.identity)).ok());
  const auto refused = open(file, gives(c.text.identity));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::invalid_argument);
  EXPECT_NE(refused.error().to_string().find("another identity"), std::string::npos);
}

TEST(Age, PassphraseOpensAndIdentitiesMayBeLocked) {
  Lock lock;
  lock.passphrase = "correct horse";
  lock.work_factor = 10;
  const Bytes file = bytes_of(encrypted("x", lock));
  EXPECT_EQ(open(file, gives("", "correct horse")).value().text(), "x");
  EXPECT_EQ(open(file, gives("", "correct Horse")).error().code(), ErrorCode::invalid_argument);
  const Pair pair = new_pair();
  const std::string locked = encrypted(pair.text.identity, lock);
  const Bytes model = bytes_of(encrypted("y", pair.lock));
  EXPECT_EQ(open(model, gives(locked, "correct horse")).value().text(), "y");
  EXPECT_FALSE(open(model, gives(locked, "wrong")).ok());
}

TEST(Age, WorkFactorIsChargedToTheBudget) {
  Lock lock;
  lock.passphrase = "p";
  lock.work_factor = 12;
  MemoryBudget budget(1 << 20);
  EXPECT_EQ(open(bytes_of(encrypted("x", lock)), gives("", "p"), &budget).error().code(), ErrorCode::out_of_budget);
}

TEST(Age, KeysHaveChecksums) {
  const Pair pair = new_pair();
  EXPECT_TRUE(pair.text.identity.starts_with("AGE-SECRET-KEY-1"));
  EXPECT_TRUE(pair.text.recipient.starts_with("age1"));
  EXPECT_EQ(recipient_of(read_identities(pair.text.identity).value()[0]), pair.text.recipient);
  for (size_t at = 4; at < pair.text.recipient.size(); ++at) {
    std::string bad = pair.text.recipient;
    bad[at] = bad[at] == 'q' ? 'p' : 'q';
    EXPECT_FALSE(read_recipients(bad).ok()) << at;
  }
  // Examples of BIP 173.
  EXPECT_EQ(bech32("a", {}), "a12uel5l");
  EXPECT_TRUE(read_bech32("A12UEL5L", "a").ok());
  EXPECT_FALSE(read_bech32("A1G7SGD8", "a").ok());
  EXPECT_FALSE(read_bech32("a12UEL5L", "a").ok());
  for (const char* text : {"", "age1", "ssh-ed25519 AAAA", "AGE-SECRET-KEY-1QQ", "age1xyz"})
    EXPECT_FALSE(read_recipients(text).ok()) << text;
  EXPECT_EQ(read_identities("AGE-PLUGIN-YUBIKEY-1Q").error().code(), ErrorCode::unsupported);
}

}  // namespace
}  // namespace moka::format::age
