// `fairlead keygen`: key files for sealed sessions, and the lines that other hosts need (docs/seal.md).
#include <fmt/format.h>

#include <memory>
#include <string>

#include "base/local_addresses.hpp"
#include "seal/keygen.hpp"
#include "tools/base/command_line.hpp"
#include "tools/base/exit_code.hpp"

namespace fairlead::tools {
namespace {

struct KeygenOptions {
  std::string file, addresses;
  bool is_psk = false, is_added = false, is_public = false;
};

/// Returns this host's addresses, except those that mean nothing elsewhere.
std::string own_addresses() {
  std::string text;
  const auto addresses = base::local_addresses();
  if (!addresses) return text;
  for (const base::SocketAddress& address : *addresses) {
    if (address.is_loopback() || address.scope != 0) continue;
    text += (text.empty() ? "" : ",") + address.ip_text();
  }
  return text;
}

int run_keygen(const KeygenOptions& options) {
  const seal::KeyKind kind = options.is_psk ? seal::KeyKind::pre_shared : seal::KeyKind::x25519;
  std::string addresses = options.addresses.empty() ? own_addresses() : options.addresses;
  if (addresses.empty()) addresses = "ADDRESS";
  const auto lines = options.is_public  ? seal::public_lines(options.file, addresses)
                     : options.is_added ? seal::add_key(options.file, kind, addresses)
                                        : seal::make_key_file(options.file, kind, addresses);
  if (!lines) return report_error(lines.error());
  fmt::print("{}", *lines);
  return kExitOk;
}

}  // namespace

void add_keygen(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<KeygenOptions>();
  CLI::App* keygen = app.add_subcommand(
      "keygen", "make the key file of FAIRLEAD_SEAL, and print the line for the known_peers files of others");
  keygen->add_option("FILE", options->file, "the key file, which only its owner may read")->required();
  auto* psk =
      keygen->add_flag("--psk", options->is_psk, "make a secret for both ends instead of a key pair; copy the file");
  auto* add = keygen->add_flag("--add", options->is_added, "add a key behind those of an existing file");
  keygen->add_flag("--public", options->is_public, "make no key: print the lines of an existing file")
      ->excludes(psk)
      ->excludes(add);
  keygen->add_option("--address", options->addresses, "addresses or ranges of the key's owner [those of this host]")
      ->type_name("ADDRESS[,...]")
      ->excludes(psk);
  keygen->callback([options, &exit_code] { exit_code = run_keygen(*options); });
}

}  // namespace fairlead::tools
