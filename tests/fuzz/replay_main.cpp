// Runs one fuzz target as an ordinary test: first each file of its corpus, then inputs generated from a seed. A
// generated input depends only on (seed, number), so one input can be repeated alone:
//   NAME_replay --corpus FOLDER --seed S --first N --inputs 1
// Half of the inputs are random bytes, the other half corpus files with a few bytes, bits or lengths changed.

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
// NOLINTNEXTLINE(bugprone-reserved-identifier): the sanitizers' name
extern "C" [[gnu::weak]] void __sanitizer_set_death_callback(void (*callback)());  // only in sanitizer builds

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kInputBytesMax = 4096;
constexpr int kChangesMax = 8;

struct Options {
  std::filesystem::path corpus;
  std::uint64_t seed = 1;
  std::uint64_t first = 0;
  std::uint64_t inputs = 20000;
};

// The current input's description, ready for a signal handler to write.
char current_input[256];
std::size_t current_input_size = 0;

void set_current_input(std::string_view what) {
  const auto end = fmt::format_to_n(current_input, sizeof current_input - 1, "while running {}", what).out;
  *end = '\n';
  current_input_size = static_cast<std::size_t>(end - current_input) + 1;
}

void name_input() {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, current_input, current_input_size);
}

void name_input_and_die(int signal) {
  name_input();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void name_input_on_death() {
  std::signal(SIGABRT, name_input_and_die);
  if (__sanitizer_set_death_callback != nullptr) {
    // Runs after the sanitizer's report, which a signal handler of ours would replace.
    __sanitizer_set_death_callback(name_input);
    return;
  }
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, name_input_and_die);
}

std::uint64_t below(std::mt19937_64& random, std::uint64_t bound) {
  return bound == 0 ? 0 : random() % bound;
}

Bytes random_bytes(std::mt19937_64& random) {
  // Short inputs find most, so the length has a random number of bits.
  const std::uint64_t size_max = std::min<std::uint64_t>(std::uint64_t{1} << below(random, 13), kInputBytesMax);
  Bytes bytes(below(random, size_max + 1));
  std::ranges::generate(bytes, [&] { return static_cast<std::uint8_t>(random()); });
  return bytes;
}

void change_once(Bytes& bytes, std::mt19937_64& random) {
  const auto at = below(random, bytes.size());
  const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
  switch (below(random, 5)) {
    case 0:
      if (!bytes.empty()) bytes[at] ^= static_cast<std::uint8_t>(1u << below(random, 8));
      break;
    case 1:
      if (!bytes.empty()) bytes[at] = static_cast<std::uint8_t>(random());
      break;
    case 2:
      if (!bytes.empty()) bytes[at] = below(random, 2) ? 0xff : 0x00;
      break;
    case 3:
      bytes.resize(at);
      break;
    default:
      if (bytes.size() < kInputBytesMax)
        bytes.insert(place, 1 + below(random, 16), static_cast<std::uint8_t>(random()));
      break;
  }
}

Bytes made_input(const Options& options, std::uint64_t number, const std::map<std::string, Bytes>& corpus) {
  std::seed_seq seeds{options.seed, options.seed >> 32, number, number >> 32};
  std::mt19937_64 random(seeds);
  if (corpus.empty() || number % 2 == 0) return random_bytes(random);
  Bytes bytes = std::next(corpus.begin(), static_cast<std::ptrdiff_t>(below(random, corpus.size())))->second;
  for (std::uint64_t changes = 1 + below(random, kChangesMax); changes > 0; --changes) change_once(bytes, random);
  return bytes;
}

// Allocates exactly the input's size, so that AddressSanitizer detects reads past its end.
void run(const Bytes& bytes, std::string_view what) {
  set_current_input(what);
  const Bytes exact(bytes.begin(), bytes.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

std::map<std::string, Bytes> read_corpus(const std::filesystem::path& folder) {
  std::map<std::string, Bytes> corpus;  // sorted by name, because the order in a folder differs between hosts
  if (folder.empty() || !std::filesystem::exists(folder)) return corpus;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream stream(entry.path(), std::ios::binary);
    corpus.emplace(entry.path().filename(), Bytes{std::istreambuf_iterator<char>(stream), {}});
  }
  return corpus;
}

bool read_number(std::string_view text, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

bool read_options(int count, char** words, Options& options) {
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string_view name = words[i], value = words[i + 1];
    if (name == "--corpus")
      options.corpus = value;
    else if (name == "--seed"    ? !read_number(value, options.seed)
             : name == "--first" ? !read_number(value, options.first)
                                 : name != "--inputs" || !read_number(value, options.inputs))
      return false;
  }
  return count % 2 == 1;
}

}  // namespace

int main(int count, char** words) {
  Options options;
  if (!read_options(count, words, options)) {
    fmt::print(stderr, "usage: {} [--corpus FOLDER] [--seed N] [--first N] [--inputs N]\n", words[0]);
    return 2;
  }
  name_input_on_death();

  const auto corpus = read_corpus(options.corpus);
  for (const auto& [name, bytes] : corpus) run(bytes, fmt::format("corpus file {}", name));
  for (std::uint64_t number = options.first; number < options.first + options.inputs; ++number)
    run(made_input(options, number, corpus), fmt::format("--seed {} --first {} --inputs 1", options.seed, number));
  fmt::print("{} files of the corpus and {} made inputs\n", corpus.size(), options.inputs);
}
