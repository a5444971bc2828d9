/* SPDX-License-Identifier: Apache-2.0 */
#include "space.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <net/route.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

_Static_assert(sizeof(struct virtio_net_hdr) == TUN_HEADER, "header of TUN");

static int failed(const char *what, const char *name)
{
	int e = errno;

	fprintf(stderr, "link: %s %s: %s\n", what, name, strerror(e));
	return -e;
}

static int write_text(const char *path, const char *format, ...)
{
	char text[64];
	va_list args;
	int n, fd = open(path, O_WRONLY | O_CLOEXEC);
	int r = 0;

	va_start(args, format);
	n = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (fd < 0 || write(fd, text, (size_t)n) != n)
		r = failed("cannot write", path);
	if (fd >= 0)
		close(fd);
	return r;
}

int space_permit(void)
{
	unsigned int uid = geteuid(), gid = getegid();
	int r;

	if (!uid)
		return 0;
	if (unshare(CLONE_NEWUSER))
		return failed("needs root, or a", "user namespace");
	r = write_text("/proc/self/setgroups", "deny");
	if (!r)
		r = write_text("/proc/self/uid_map", "0 %u 1", uid);
	return r ? r : write_text("/proc/self/gid_map", "0 %u 1", gid);
}

static void set_address(struct sockaddr *out, const char *text)
{
	struct sockaddr_in in = { .sin_family = AF_INET };

	inet_pton(AF_INET, text, &in.sin_addr);
	memcpy(out, &in, sizeof(in));
}

static struct ifreq request(const char *name)
{
	struct ifreq r = { 0 };

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	return r;
}

static int set_up(int fd, const char *name)
{
	struct ifreq r = request(name);

	if (ioctl(fd, SIOCGIFFLAGS, &r))
		return failed("cannot find", name);
	r.ifr_flags |= IFF_UP | IFF_RUNNING;
	return ioctl(fd, SIOCSIFFLAGS, &r) ? failed("cannot start", name) : 0;
}

static int set_host(int fd, const char *name, const char *address)
{
	struct ifreq r = request(name);

	set_address(&r.ifr_addr, address);
	if (ioctl(fd, SIOCSIFADDR, &r))
		return failed("cannot set the address of", name);
	set_address(&r.ifr_netmask, "255.255.255.255");
	if (ioctl(fd, SIOCSIFNETMASK, &r))
		return failed("cannot set the mask of", name);
	return 0;
}

static int set_peer(int fd, const char *name, const char *address)
{
	struct ifreq r = request(name);

	set_address(&r.ifr_dstaddr, address);
	if (ioctl(fd, SIOCSIFDSTADDR, &r))
		return failed("cannot set the other end of", name);
	return 0;
}

static int set_sizes(int fd, const char *name, int mtu)
{
	struct ifreq r = request(name);

	r.ifr_mtu = mtu;
	if (ioctl(fd, SIOCSIFMTU, &r))
		return failed("cannot set the MTU of", name);
	r.ifr_qlen = 4000;
	if (ioctl(fd, SIOCSIFTXQLEN, &r))
		return failed("cannot set the queue of", name);
	return 0;
}

static int route_all(int fd, char *name)
{
	struct rtentry r = { .rt_flags = RTF_UP, .rt_dev = name };

	set_address(&r.rt_dst, "0.0.0.0");
	set_address(&r.rt_genmask, "0.0.0.0");
	return ioctl(fd, SIOCADDRT, &r) ? failed("no route by", name) : 0;
}

static int with_socket(int (*body)(int fd, void *arg), void *arg)
{
	int r, fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return failed("cannot make", "a socket");
	r = body(fd, arg);
	close(fd);
	return r;
}

static int start_loopback(int fd, void *arg)
{
	(void)arg;
	return set_up(fd, "lo");
}

int space_enter(const struct space_options *o)
{
	int fd, r;

	if (unshare(CLONE_NEWNET))
		return failed("cannot make", "a network namespace");
	r = with_socket(start_loopback, NULL);
	if (!r && o->congestion)
		r = write_text("/proc/sys/net/ipv4/tcp_congestion_control",
			       "%s", o->congestion);
	if (r)
		return r;
	fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	return fd < 0 ? failed("cannot open", "/proc/self/ns/net") : fd;
}

struct end {
	char name[IFNAMSIZ];
	char here[32], there[32];
	int mtu, is_server;
};

static int configure(int fd, void *arg)
{
	struct end *e = arg;
	int r = set_host(fd, e->name, e->here);

	if (!r)
		r = set_peer(fd, e->name, e->there);
	if (!r)
		r = set_sizes(fd, e->name, e->mtu);
	if (!r)
		r = set_up(fd, e->name);
	return r || e->is_server ? r : route_all(fd, e->name);
}

static int open_tun(const char *name)
{
	struct ifreq r = request(name);
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	int size = TUN_HEADER;

	if (fd < 0)
		return failed("cannot open", "/dev/net/tun");
	r.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
	if (ioctl(fd, TUNSETIFF, &r) || ioctl(fd, TUNSETVNETHDRSZ, &size) ||
	    ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM)) {
		failed("cannot make", name);
		close(fd);
		return -EIO;
	}
	return fd;
}

int space_tun(const struct space_options *o, int k, int is_server)
{
	struct end e = { .mtu = o->mtu, .is_server = is_server };
	int fd, r;

	snprintf(e.name, sizeof(e.name), "link%d", k);
	snprintf(e.here, sizeof(e.here), "10.99.%d.%d", k + 1,
		 is_server ? 1 : 2);
	snprintf(e.there, sizeof(e.there), "10.99.%d.%d", k + 1,
		 is_server ? 2 : 1);
	fd = open_tun(e.name);
	if (fd < 0)
		return fd;
	r = with_socket(configure, &e);
	if (r)
		close(fd);
	return r ? r : fd;
}

static int add_server(int fd, void *arg)
{
	(void)arg;
	return set_host(fd, "lo:1", SERVER_ADDRESS);
}

int space_add_server(void)
{
	return with_socket(add_server, NULL);
}
