-- SPDX-License-Identifier: MIT
-- A mix: bulk insert, index, join, group, window, text search.
create table item(id integer primary key, kind integer, name text, price real);
create table sale(item integer, day integer, n integer);
with recursive c(x) as (values(1) union all select x + 1 from c where x < 90000)
insert into item select x, x % 97, 'item ' || (x * 7919 % 90000), (x * 31 % 1000) / 10.0 from c;
with recursive c(x) as (values(1) union all select x + 1 from c where x < 550000)
insert into sale select x * 7919 % 90000 + 1, x % 365, x % 13 from c;
create index sale_item on sale(item);
create index item_name on item(name);
select kind, count(*), sum(price * n), max(day) from item join sale on sale.item = item.id
group by kind order by 3 desc limit 5;
select count(*) from item where name like '%99%7%' or name glob 'item 1?3*';
select day, sum(n), avg(sum(n)) over (order by day rows 6 preceding) from sale group by day
order by 3 desc limit 5;
select count(*) from (select item, sum(n) as s from sale group by item having s > 20);
select a.kind, b.kind, count(*) from item a join item b on a.name = b.name group by 1, 2
order by 3 desc limit 5;
