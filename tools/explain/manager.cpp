// The events of librdmacm, as Debian's library delivers them from the simulated device file (doors/rdma_cm).

#include <iterator>

#include "tools/explain/word.hpp"

namespace fairlead::tools {
namespace {

constexpr std::string_view kManagerEvent = "event of librdmacm", kRejectReason = "reason of RDMA_CM_EVENT_REJECTED";

constexpr Word kManagerWords[] = {
    {kManagerEvent, 0, "RDMA_CM_EVENT_ADDR_RESOLVED", "the address has a device: call rdma_resolve_route()",
     "ADDR_RESOLVED"},
    {kManagerEvent, 1, "RDMA_CM_EVENT_ADDR_ERROR",
     "no device leads to the address; the status is an errno: `ip route get`, FAIRLEAD_DEVICE", "ADDR_ERROR"},
    {kManagerEvent, 2, "RDMA_CM_EVENT_ROUTE_RESOLVED", "the route is known: call rdma_connect()", "ROUTE_RESOLVED"},
    {kManagerEvent, 3, "RDMA_CM_EVENT_ROUTE_ERROR", "no route to the address", "ROUTE_ERROR"},
    {kManagerEvent, 4, "RDMA_CM_EVENT_CONNECT_REQUEST",
     "an initiator asks a listener for a connection: call rdma_accept() or rdma_reject()", "CONNECT_REQUEST"},
    {kManagerEvent, 5, "RDMA_CM_EVENT_CONNECT_RESPONSE",
     "the peer accepted, and this id has no queue pair of its own: call rdma_establish()", "CONNECT_RESPONSE"},
    {kManagerEvent, 6, "RDMA_CM_EVENT_CONNECT_ERROR",
     "the connection could not be made although the peer accepted; the status is an errno", "CONNECT_ERROR"},
    {kManagerEvent, 7, "RDMA_CM_EVENT_UNREACHABLE",
     "-110 (ETIMEDOUT): the host, or a program, did not answer: is UDP permitted between the hosts, also to the "
     "listener's port? For a datagram id, 1: nobody listens there, 2: the program rejected it or has ended",
     "UNREACHABLE"},
    {kManagerEvent, 8, "RDMA_CM_EVENT_REJECTED",
     "the peer rejected the request; the status is the reason, most often 8 or 28", "REJECTED"},
    {kManagerEvent, 9, "RDMA_CM_EVENT_ESTABLISHED", "the connection is there: both ends may send", "ESTABLISHED"},
    {kManagerEvent, 10, "RDMA_CM_EVENT_DISCONNECTED",
     "the peer ended the connection, or does not answer any more: call rdma_disconnect(), else the queue pair fails "
     "after 10 s",
     "DISCONNECTED"},
    {kManagerEvent, 11, "RDMA_CM_EVENT_DEVICE_REMOVAL", "the interface of the device was deleted: destroy the id",
     "DEVICE_REMOVAL"},
    {kManagerEvent, 12, "RDMA_CM_EVENT_MULTICAST_JOIN", "the id belongs to the multicast group", "MULTICAST_JOIN"},
    {kManagerEvent, 13, "RDMA_CM_EVENT_MULTICAST_ERROR",
     "the id could not join the multicast group; the status is an errno", "MULTICAST_ERROR"},
    {kManagerEvent, 14, "RDMA_CM_EVENT_ADDR_CHANGE", "never reported: it concerns network interfaces that are bonded",
     "ADDR_CHANGE"},
    {kManagerEvent, 15, "RDMA_CM_EVENT_TIMEWAIT_EXIT",
     "the time has passed after which the queue pair may be used again", "TIMEWAIT_EXIT"},
    {kRejectReason, 4, "IB_CM_REJ_TIMEOUT", "the peer waited in vain for the answer of this program, and gave up"},
    {kRejectReason, 6, "IB_CM_REJ_INVALID_COMM_ID",
     "the peer does not know this connection: its program is a new one, or has "
     "given it up"},
    {kRejectReason, 8, "IB_CM_REJ_INVALID_SERVICE_ID",
     "no program listens at that port of the peer's device address, in that port space: start the server first, also "
     "with `fairlead run`"},
    {kRejectReason, 28, "IB_CM_REJ_CONSUMER_DEFINED", "the program at the peer called rdma_reject(), or has ended"},
    {kRejectReason, 35, "IB_CM_REJ_VENDOR_OPTION_NOT_SUPPORTED",
     "the program at the peer called rdma_reject_ece(): it does not accept the options of this end"},
};

}  // namespace

std::span<const Word> manager_words() {
  return kManagerWords;
}

}  // namespace fairlead::tools
