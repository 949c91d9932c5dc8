#include "tests/class_sizes.hpp"

#include <algorithm>
#include <cctype>
#include <regex>

namespace fairlead::tests {
namespace {

bool is_word(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

/// Returns the end of the literal that begins at `at`.
std::size_t end_of_literal(std::string_view text, std::size_t at) {
  const char quote = text[at];
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      return i + 1;
    }
  }
  return text.size();
}

std::size_t end_of_raw_literal(std::string_view text, std::size_t at) {
  const std::size_t open = std::min(text.find('(', at), text.size());
  const std::string close = ")" + std::string(text.substr(at + 2, open - at - 2)) + "\"";
  const std::size_t end = text.find(close, open);
  return end == std::string_view::npos ? text.size() : end + close.size();
}

/// Returns the end of a preprocessor line and its continuation lines.
std::size_t end_of_directive(std::string_view text, std::size_t at) {
  std::size_t end = text.find('\n', at);
  while (end != std::string_view::npos && text[end - 1] == '\\') end = text.find('\n', end + 1);
  return std::min(end, text.size());
}

/// Removes comments, preprocessor lines and the contents of literals.
std::string bare(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view rest = text.substr(i);
    if (rest.starts_with("//")) {
      i = std::min(text.find('\n', i), text.size());
    } else if (rest.starts_with("/*")) {
      const std::size_t end = text.find("*/", i);
      i = end == std::string_view::npos ? text.size() : end + 2;
    } else if (rest.starts_with("R\"")) {
      i = end_of_raw_literal(text, i);
      out += '0';
    } else if (rest[0] == '"' || (rest[0] == '\'' && (i == 0 || !is_word(text[i - 1])))) {
      i = end_of_literal(text, i);
      out += '0';
    } else if (rest[0] == '#') {
      i = end_of_directive(text, i);
    } else {
      out += text[i++];
    }
  }
  return out;
}

/// Returns the end of the block whose opening brace is at `at`.
std::size_t end_of_block(std::string_view text, std::size_t at) {
  std::size_t depth = 0;
  for (; at < text.size(); ++at) {
    if (text[at] == '{') ++depth;
    if (text[at] == '}' && --depth == 0) return at + 1;
  }
  return text.size();
}

bool starts_as(std::string_view declaration, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) {
    return declaration.starts_with(word) && (declaration.size() == word.size() || !is_word(declaration[word.size()]));
  });
}

/// Removes access labels, a leading template head, and parentheses that are not parameter lists.
std::string plain(std::string text) {
  static const std::regex labels("\\b(public|private|protected)\\s*:(?!:)");
  static const std::regex others(
      "\\b(alignas|decltype|noexcept|explicit|requires|__attribute__)\\s*\\((?:[^()]|\\([^()]*\\))*\\)");
  text = std::regex_replace(text, labels, " ");
  text = std::regex_replace(text, others, " ");
  text.erase(0, std::min(text.find_first_not_of(" \t\n"), text.size()));
  if (!text.starts_with("template")) return text;
  std::size_t depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '<') ++depth;
    if (text[i] == '>' && --depth == 0) return plain(text.substr(i + 1));
  }
  return text;
}

/// A declaration declares a function if its first parenthesis outside template arguments comes before any brace or
/// equals sign.
bool is_function(const std::string& text) {
  const std::string declaration = plain(text);
  if (starts_as(declaration, {"friend", "using", "static_assert", "typedef", "enum", "class", "struct", "union"}))
    return false;
  if (declaration.find("operator") != std::string::npos) return true;
  std::size_t depth = 0;
  for (const char letter : declaration) {
    if (letter == '<') ++depth;
    if (letter == '>' && depth > 0) --depth;
    if (depth > 0) continue;
    if (letter == '(') return true;
    if (letter == '{' || letter == '=') return false;
  }
  return false;
}

/// Returns the name of the class whose body follows, or an empty string if none does.
std::string class_name(const std::string& text) {
  const std::string head = plain(text);
  if (!starts_as(head, {"class", "struct", "union"})) return {};
  std::size_t at = head.find_first_of(" \t\n");
  if (at == std::string::npos) return {};
  const std::size_t begin = head.find_first_not_of(" \t\n", at);
  std::size_t end = begin;
  while (end < head.size() && (is_word(head[end]) || head[end] == ':')) {
    if (head[end] == ':' && (end + 1 == head.size() || head[end + 1] != ':') && head[end - 1] != ':') break;
    ++end;
  }
  return begin == std::string::npos ? std::string() : head.substr(begin, end - begin);
}

class Counter {
 public:
  std::vector<ClassSize> sizes;

  /// `text`: the contents of a class, a namespace or a whole file.
  void count(std::string_view text, const std::string& name) {
    std::size_t functions = 0;
    std::string declaration;
    for (std::size_t i = 0; i < text.size();) {
      if (text[i] == ';') {
        functions += is_function(declaration) ? 1U : 0U;
        declaration.clear();
        ++i;
      } else if (text[i] == '{') {
        const std::size_t end = end_of_block(text, i);
        functions += take_block(text.substr(i + 1, end - i - 2), text.substr(end), name, declaration);
        i = end;
      } else {
        declaration += text[i++];
      }
    }
    if (!name.empty()) sizes.push_back({name, functions});
  }

 private:
  /// Returns 1 if the block is the body of a function.
  std::size_t take_block(std::string_view block, std::string_view rest, const std::string& name,
                         std::string& declaration) {
    if (const std::string inner = class_name(declaration); !inner.empty()) {
      count(block, name.empty() ? inner : name + "::" + inner);
      declaration = " class ";  // a member may follow
      return 0;
    }
    const std::string head = plain(declaration);
    if (starts_as(head, {"namespace", "inline namespace", "extern"})) {
      count(block, name);
      declaration.clear();
      return 0;
    }
    const std::size_t next = rest.find_first_not_of(" \t\n");
    const bool goes_on = next != std::string_view::npos && (rest[next] == ',' || rest[next] == '{');
    if (!is_function(declaration) || goes_on) {  // a value, or a member in a constructor's initializer list
      declaration += ' ';
      return 0;
    }
    declaration.clear();
    return 1;
  }
};

}  // namespace

std::vector<ClassSize> class_sizes(std::string_view text) {
  Counter counter;
  counter.count(bare(text), "");
  return counter.sizes;
}

}  // namespace fairlead::tests
