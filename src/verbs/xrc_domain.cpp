#include <fairlead/verbs/xrc_domain.hpp>

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "verbs/xrc_domain_state.hpp"

namespace fairlead::verbs {
namespace {

/// The XRC domains of this process that are bound to a file.
struct DomainsOfFiles {
  std::mutex mutex;
  std::vector<std::weak_ptr<XrcDomainState>> domains;
};
DomainsOfFiles& domains_of_files() {
  static auto* const all = new DomainsOfFiles;
  return *all;
}

std::uint32_t next_xrc_number() {
  static std::atomic<std::uint32_t> last{0};
  return ++last;
}

std::shared_ptr<XrcDomainState> make_domain(const Context& context, const struct stat& file) {
  auto state = std::make_shared<XrcDomainState>();
  state->context = context.state();
  state->number = next_xrc_number();
  state->device = file.st_dev;
  state->inode = file.st_ino;
  return state;
}

/// Creates another handle, which keeps the domain alive.
std::shared_ptr<XrcDomainState> open_handle(const std::shared_ptr<XrcDomainState>& domain) {
  const auto owner = std::make_shared<std::shared_ptr<XrcDomainState>>(domain);
  std::shared_ptr<XrcDomainState> handle(owner, domain.get());
  domain->handles.push_back(handle);
  return handle;
}

bool is_same_handle(const std::weak_ptr<XrcDomainState>& one, const std::shared_ptr<XrcDomainState>& other) {
  return !one.owner_before(other) && !other.owner_before(one);
}

}  // namespace

Result<XrcDomain> XrcDomain::open(const Context& context, const XrcDomainOptions& options) {
  if (!context.state()) return failure(EINVAL, "this context is closed");
  if (auto alive = check_alive(*context.state()); !alive) return std::unexpected(std::move(alive.error()));
  struct stat file{};
  if (options.descriptor == -1) {
    if (!options.may_create) return failure(EINVAL, "XRC domain: without a file it can only be created");
    return XrcDomain(open_handle(make_domain(context, {})));
  }
  if (::fstat(options.descriptor, &file) != 0) return failure(EBADF, "XRC domain: no such file descriptor");
  DomainsOfFiles& all = domains_of_files();
  const std::scoped_lock lock(all.mutex);
  std::erase_if(all.domains, [](const auto& each) { return each.expired(); });
  for (const auto& each : all.domains) {
    const auto known = each.lock();
    const bool is_it = known && known->device == file.st_dev && known->inode == file.st_ino &&
                       !known->handles.empty() && known->context->pair_core == context.state()->pair_core &&
                       !known->context->is_dead();
    if (!is_it) continue;
    if (options.has_to_create) return failure(EINVAL, "XRC domain: the domain of this file is open already");
    return XrcDomain(open_handle(known));
  }
  if (!options.may_create) return failure(EAGAIN, "XRC domain: the domain of this file is not open");
  auto made = make_domain(context, file);
  made->file = base::FileDescriptor(::fcntl(options.descriptor, F_DUPFD_CLOEXEC, 0));
  if (!made->file.is_open()) return failure(errno, "XRC domain: no descriptor is left to keep its file (ulimit -n)");
  all.domains.push_back(made);
  return XrcDomain(open_handle(made));
}

Result<> XrcDomain::close() {
  if (!state_) return failure(EINVAL, "this XRC domain is closed already");
  {
    const std::scoped_lock lock(domains_of_files().mutex);
    auto& handles = state_->handles;
    std::erase_if(handles, [](const auto& each) { return each.expired(); });
    const auto own = std::ranges::find_if(handles, [&](const auto& each) { return is_same_handle(each, state_); });
    if (own == handles.end()) return failure(EINVAL, "this XRC domain is closed already, by a copy of the handle");
    if (handles.size() == 1 && state_->members.count() != 0 && !state_->context->is_dead())
      return failure(EBUSY, "queue pairs and shared receive queues are left in the XRC domain: destroy them first");
    handles.erase(own);
  }
  state_.reset();
  return {};
}

}  // namespace fairlead::verbs
